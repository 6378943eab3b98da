#include "yoke/data/tokens.hpp"

#include <array>
#include <cstddef>
#include <span>

#include "fingerprint.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {

Tokens::Tokens(const std::filesystem::path& path, const TokensOptions& options)
    : file_(std::make_shared<const feed::TokenFile>(path, options.file)),
      length_(options.length),
      stride_(options.stride > 0 ? options.stride : options.length),
      size_(0) {
  if (length_ < 1 || options.stride < 0) {
    throw Error(Code::invalid_argument, core::text("read ", path.string(), " in windows of ",
                                                   length_, " ids, ", options.stride, " apart"));
  }
  size_ = (file_->windows(length_ + 1) - 1) / stride_ + 1;
}

SampleLayout Tokens::layout() const {
  return {.input_sizes = {length_},
          .input_dtype = at::kLong,
          .target_sizes = {length_},
          .target_dtype = at::kLong};
}

void Tokens::fill(const Request& request, const Rows& rows) const {
  auto* input = rows.input.mutable_data_ptr<std::int64_t>();
  auto* target = rows.target.mutable_data_ptr<std::int64_t>();
  const auto count = static_cast<std::size_t>(length_);
  for (const std::int64_t index : request.indices) {
    file_->copy(index * stride_, {input, count});
    file_->copy(index * stride_ + 1, {target, count});
    input += length_;
    target += length_;
  }
}

std::string Tokens::origin(std::int64_t index) const {
  return core::text(file_->path().string(), ", id ", index * stride_);
}

std::uint64_t Tokens::fingerprint() const {
  const std::array<std::int64_t, 3> numbers{file_->tokens(), length_, stride_};
  return fingerprint_of(numbers);
}

}  // namespace yoke::data
