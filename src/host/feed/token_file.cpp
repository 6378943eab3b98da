#include "yoke/feed/token_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr std::size_t kHeadNumbers = 256;
constexpr std::size_t kHeadBytes = kHeadNumbers * sizeof(std::int32_t);
using HeadNumbers = std::array<std::int32_t, kHeadNumbers>;

// What the head's first two numbers say of the width.
struct HeadKind {
  std::int32_t magic;
  std::int32_t version;
  TokenWidth width;
};
constexpr std::array kHeadKinds{HeadKind{20'240'520, 1, TokenWidth::two},
                                HeadKind{20'240'801, 7, TokenWidth::four}};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what,
                       std::string hint = {}) {
  throw Error(Code::corrupt_data, core::text("open token file ", path.string(), ": ", what),
              std::move(hint));
}

HeadNumbers head_of(std::span<const std::byte> bytes) {
  HeadNumbers numbers{};
  if (bytes.size() >= kHeadBytes) std::memcpy(numbers.data(), bytes.data(), kHeadBytes);
  return numbers;
}

const HeadKind* kind_of(const HeadNumbers& head, const std::filesystem::path& path) {
  for (const HeadKind& kind : kHeadKinds) {
    if (head[0] != kind.magic) continue;
    if (head[1] == kind.version) return &kind;
    fail(path, core::text("its head is of version ", head[1], ", known is ", kind.version));
  }
  return nullptr;
}

std::int64_t bytes_of(TokenWidth width) { return static_cast<std::int64_t>(width); }

template <class Id>
std::int64_t largest_of(std::span<const std::byte> ids, std::span<std::int64_t> out) {
  Id largest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Id id;
    std::memcpy(&id, ids.data() + i * sizeof(Id), sizeof(Id));
    out[i] = id;
    largest = std::max(largest, id);
  }
  return static_cast<std::int64_t>(largest);
}

}  // namespace

TokenFile::TokenFile(std::filesystem::path path, TokenFileOptions options)
    : path_(std::move(path)),
      storage_(std::make_unique<Bytes>(Bytes::map(path_))),
      ids_(storage_->view()),
      vocabulary_(options.vocabulary),
      width_(options.width) {
  const HeadNumbers head = head_of(ids_);
  const HeadKind* kind = kind_of(head, path_);
  has_head_ = kind != nullptr;
  if (has_head_) {
    width_ = kind->width;
    ids_ = ids_.subspan(kHeadBytes);
  }
  const std::int64_t width = bytes_of(width_);
  const auto bytes = static_cast<std::int64_t>(ids_.size());
  if (bytes % width != 0) {
    fail(path_, core::text(bytes, " bytes are no whole number of ids of ", width, " bytes"),
         "the file was cut short, or is of another width");
  }
  tokens_ = bytes / width;
  if (has_head_ && tokens_ != head[2]) {
    fail(path_, core::text("expected ", head[2], " ids of ", width, " bytes, found ", tokens_),
         "the file was cut short: fetch it again");
  }
}

TokenFile::~TokenFile() = default;
TokenFile::TokenFile(TokenFile&&) noexcept = default;
TokenFile& TokenFile::operator=(TokenFile&&) noexcept = default;

std::int64_t TokenFile::windows(std::int64_t length) const {
  if (length >= 1 && length <= tokens_) return tokens_ - length + 1;
  throw Error(Code::invalid_argument,
              core::text("read windows of ", path_.string(), ": need ", length, ", have ", tokens_,
                         " tokens"),
              "take a shorter window, or a longer file");
}

void TokenFile::copy(std::int64_t start, std::span<std::int64_t> out) const {
  const auto ids = ids_.subspan(static_cast<std::size_t>(start * bytes_of(width_)));
  const std::int64_t largest = width_ == TokenWidth::two ? largest_of<std::uint16_t>(ids, out)
                                                         : largest_of<std::uint32_t>(ids, out);
  if (vocabulary_ == 0 || largest < vocabulary_) return;
  std::size_t at = 0;
  while (out[at] < vocabulary_) ++at;
  throw Error(
      Code::corrupt_data,
      core::text("read ", path_.string(), ": id ", out[at], " at position ",
                 start + static_cast<std::int64_t>(at), ", the vocabulary has ", vocabulary_),
      core::text("check that the file is of this vocabulary, and that ids have ", bytes_of(width_),
                 " bytes"));
}

struct TokenWriter::State {
  State(std::filesystem::path file_path, TokenWidth token_width)
      : path(std::move(file_path)), width(token_width), file(path) {}

  [[nodiscard]] std::int64_t largest_id() const {
    return width == TokenWidth::two ? std::numeric_limits<std::uint16_t>::max()
                                    : std::numeric_limits<std::uint32_t>::max();
  }

  const std::filesystem::path path;
  const TokenWidth width;
  core::AtomicFile file;
  std::string ids;
  std::int64_t count = 0;
};

TokenWriter::TokenWriter(std::filesystem::path path, TokenWidth width)
    : state_(std::make_unique<State>(std::move(path), width)) {}

TokenWriter::~TokenWriter() = default;

void TokenWriter::add(std::span<const std::int64_t> ids) {
  State& s = *state_;
  for (const std::int64_t id : ids) {
    if (id < 0 || id > s.largest_id()) {
      throw Error(Code::invalid_argument,
                  core::text("write ", s.path.string(), ": id ", id, " > ", s.largest_id(),
                             ", the largest of ", bytes_of(s.width), " bytes"),
                  "write ids of four bytes");
    }
    s.ids.append(reinterpret_cast<const char*>(&id),  // low bytes first
                 static_cast<std::size_t>(bytes_of(s.width)));
    ++s.count;
  }
}

void TokenWriter::finish() {
  State& s = *state_;
  HeadNumbers head{};
  for (const HeadKind& kind : kHeadKinds) {
    if (kind.width != s.width) continue;
    head[0] = kind.magic;
    head[1] = kind.version;
  }
  if (s.count > std::numeric_limits<std::int32_t>::max()) {
    throw Error(
        Code::invalid_argument,
        core::text("write ", s.path.string(), ": ", s.count, " ids, and a head counts 2147483647"),
        "write several files");
  }
  head[2] = static_cast<std::int32_t>(s.count);
  s.file.write(head.data(), sizeof(head));
  s.file.write(s.ids);
  s.file.commit();
}

}  // namespace yoke::feed
