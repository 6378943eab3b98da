#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace yoke::feed {

/// Indices of data in core::cache_folder(), each in a file of its own. A cache that cannot be used
/// costs time, no more: nothing here throws for it.
///
/// `variant` tells several indices of one path apart.
[[nodiscard]] std::optional<std::string> load_index(const std::filesystem::path& of,
                                                    std::string_view variant);
void keep_index(const std::filesystem::path& of, std::string_view variant, std::string_view bytes);

/// Values behind one another, and their sum at the end.
class IndexWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <class T>
  void put_list(const T& values) {  // a string, or a vector of plain values
    put(std::uint64_t{values.size()});
    if (!values.empty())
      bytes_.append(reinterpret_cast<const char*>(values.data()),
                    values.size() * sizeof(values[0]));
  }

  /// All of them, with the sum.
  [[nodiscard]] std::string finish();

 private:
  std::string bytes_;
};

/// Takes them out again, in the same order; false where they are not there. After one false all
/// are.
class IndexReader {
 public:
  /// Requires: the bytes outlive the reader. Without a sum that fits, nothing is there.
  explicit IndexReader(std::string_view bytes);

  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool get(T& value) {
    if (left_.size() < sizeof(T)) return fail();
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return true;
  }
  template <class T>
  [[nodiscard]] bool get_list(T& values) {
    std::uint64_t count = 0;
    if (!get(count) || count > left_.size() / sizeof(values[0])) return fail();
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), left_.data(), count * sizeof(values[0]));
    left_.remove_prefix(count * sizeof(values[0]));
    return true;
  }

  /// Nothing is left.
  [[nodiscard]] bool at_end() const noexcept { return left_.empty() && !failed_; }

 private:
  bool fail() noexcept {
    left_ = {};
    failed_ = true;
    return false;
  }

  std::string_view left_;
  bool failed_ = false;
};

}  // namespace yoke::feed
