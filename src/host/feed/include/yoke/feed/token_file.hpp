#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace yoke::feed {

class Bytes;

/// Bytes of a token in a file.
enum class TokenWidth : std::uint8_t { two = 2, four = 4 };

struct TokenFileOptions {
  TokenWidth width = TokenWidth::two;  ///< of a file without a head; one with a head states its own
  std::int64_t vocabulary = 0;         ///< ids from it on are errors; 0: not known
};

/// Token ids in a file, to be read in windows: nanoGPT's layout (ids and nothing else) and llm.c's
/// (a head of 256 numbers, then ids). docs/feed.md has both.
///
///   const TokenFile tokens("train.bin", {.vocabulary = 50'257});
///   std::vector<std::int64_t> window(1025);  // 1024 inputs, and targets one further
///   tokens.copy(start, window);              // 0 <= start < tokens.windows(1025)
///
/// Owns: the mapping. Threads: any (immutable).
/// Errors: not_found, io; corrupt_data with the path for a size that does not fit the head or the
///   width, and, from copy(), for an id beyond the vocabulary, with its position.
/// Cost: O(1) to open; the system reads what is copied.
class TokenFile {
 public:
  explicit TokenFile(std::filesystem::path path, TokenFileOptions options = {});
  ~TokenFile();
  TokenFile(TokenFile&&) noexcept;
  TokenFile& operator=(TokenFile&&) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] TokenWidth width() const noexcept { return width_; }
  [[nodiscard]] bool has_head() const noexcept { return has_head_; }

  /// Places at which a window of `length` tokens can begin.
  /// Errors: invalid_argument where there is none, with both numbers.
  [[nodiscard]] std::int64_t windows(std::int64_t length) const;

  /// The ids from `start` on. Requires: they are in the file.
  void copy(std::int64_t start, std::span<std::int64_t> out) const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<Bytes> storage_;
  std::span<const std::byte> ids_;
  std::int64_t tokens_ = 0;
  std::int64_t vocabulary_ = 0;
  TokenWidth width_ = TokenWidth::two;
  bool has_head_ = false;
};

/// Writes a token file in llm.c's layout, whole or not at all.
///
/// Errors: invalid_argument for an id that the width cannot hold, with the id and the largest;
///   io as of core::AtomicFile.
class TokenWriter {
 public:
  explicit TokenWriter(std::filesystem::path path, TokenWidth width = TokenWidth::two);
  ~TokenWriter();  ///< without finish(): nothing is written
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void add(std::span<const std::int64_t> ids);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
