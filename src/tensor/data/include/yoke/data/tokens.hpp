#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "yoke/data/dataset.hpp"
#include "yoke/feed/token_file.hpp"

namespace yoke::data {

struct TokensOptions {
  std::int64_t length = 1024;     ///< ids of an input
  std::int64_t stride = 0;        ///< from one sample's start to the next one's; 0: length
  feed::TokenFileOptions file{};  ///< width of ids without a head, and the vocabulary
};

/// Windows of a token file, for a language model: sample i begins at id i x stride, and its target
/// is one id further.
///
///   Tokens train("train.bin", {.length = 1024, .file = {.vocabulary = 50'257}});
///
/// Shapes: input and target [length] int64.
/// Copies share the file's mapping. Threads: any.
/// Errors: those of feed::TokenFile, of a sample with its place; invalid_argument for a file of
/// fewer
///   than length + 1 ids.
class Tokens final : public Dataset {
 public:
  explicit Tokens(const std::filesystem::path& path, const TokensOptions& options = {});

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] SampleLayout layout() const override;
  void fill(const Request& request, const Rows& rows) const override;
  [[nodiscard]] std::int64_t rows_at_once() const override { return 16; }
  [[nodiscard]] std::string origin(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  std::shared_ptr<const feed::TokenFile> file_;  // of this object and its copies
  std::int64_t length_;
  std::int64_t stride_;
  std::int64_t size_;
};

}  // namespace yoke::data
