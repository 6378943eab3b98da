#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace yoke::feed {

/// Bytes that do not change: a file mapped into memory, or memory of its own. Moves; never copies.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::vector<std::byte> own) : own_(std::move(own)), view_(own_) {}

  /// Errors: not_found, io, both with the path; invalid_argument for a folder.
  [[nodiscard]] static Bytes map(const std::filesystem::path& path);

  ~Bytes() { unmap(); }
  Bytes(Bytes&& other) noexcept { *this = std::move(other); }
  Bytes& operator=(Bytes&& other) noexcept;

  [[nodiscard]] std::span<const std::byte> view() const noexcept { return view_; }

 private:
  void unmap() noexcept;

  std::vector<std::byte> own_;
  std::span<const std::byte> view_;
  void* mapping_ = nullptr;
};

}  // namespace yoke::feed
