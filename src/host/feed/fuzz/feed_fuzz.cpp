// Feeds damaged files to the readers of room feed. Whatever the bytes, a reader returns or throws
// yoke::Error.
//
// The first byte chooses the reader: 0 images, 1 tar archives, 2 IDX files, 3 the keys and values
// of an LMDB (whose own pages LMDB checks), 4 token files, 5 a shard's index, 6 a folder's index.
// With libFuzzer (clang -fsanitize=fuzzer, -DYOKE_LIBFUZZER) LLVMFuzzerTestOneInput is the target;
// otherwise main() mutates sound files for so many seconds:
//
//   feed_fuzz_test SECONDS [SEED]

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../folder_index.hpp"
#include "../index_cache.hpp"
#include "../sample_groups.hpp"
#include "../shard_index.hpp"
#include "../tar_reader.hpp"
#include "../tests/image_files.hpp"
#include "../tests/tar_bytes.hpp"
#include "fuzz_loop.hpp"
#include "yoke/core/error.hpp"
#include "yoke/feed/decode.hpp"
#include "yoke/feed/idx.hpp"
#include "yoke/feed/token_file.hpp"

namespace yoke::feed {
namespace {

using View = std::span<const std::byte>;

enum class Reader : std::uint8_t { image, tar, idx, lmdb, tokens, shard_index, folder_index };
constexpr std::array kReaders{"images",      "tar files",     "IDX files",     "LMDB values",
                              "token files", "shard indexes", "folder indexes"};

// Bytes under a path, without a disk.
class MemoryFile {
 public:
  explicit MemoryFile(View bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

std::string_view text_of(View bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A damaged index is thrown away for its sum; behind a sum that fits, the rest is read.
std::string with_sum(View bytes) {
  IndexWriter writer;
  for (const std::byte byte : bytes) writer.put(byte);
  return writer.finish();
}

// Every pixel, so that a sanitizer sees one that is not there; of a part and of the whole.
unsigned read_image(View bytes) {
  ImageDecoder decoder({.exif = Exif::apply, .truncated = Truncated::fill, .max_pixels = 1 << 20});
  Image image;
  unsigned sum = 0;
  const ImageFacts facts = decoder.open(bytes);
  const Region middle{facts.width / 3, facts.height / 3, (facts.width + 2) / 3,
                      (facts.height + 2) / 3};
  for (const std::uint8_t value : rgb(image, decoder.read(middle, image))) sum += value;
  decoder.open(bytes);
  decoder.read(image);
  for (const std::uint8_t value : rgb(image)) sum += value;
  return sum;
}

unsigned read_tar(View bytes) {
  TarReader reader("fuzz", bytes.size(), [&](std::uint64_t offset, std::span<std::byte> out) {
    const std::size_t at = std::min<std::uint64_t>(offset, bytes.size());
    const std::size_t count = std::min(out.size(), bytes.size() - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, out.begin());
    return count;
  });
  SampleGroups groups("fuzz");
  unsigned sum = 0;
  while (const auto member = reader.next()) {
    const View inside = bytes.subspan(member->offset, member->size);
    for (const std::byte byte : inside) sum += std::to_integer<unsigned>(byte);
    groups.add(member->name, member->offset, member->size,
               {reinterpret_cast<const char*>(inside.data()), inside.size()});
  }
  groups.finish();
  return sum;
}

unsigned read_idx(View bytes) {
  const IdxFile file = parse_idx({bytes.begin(), bytes.end()}, "fuzz");
  unsigned sum = 0;
  for (const std::byte byte : file.bytes()) sum += std::to_integer<unsigned>(byte);
  return sum;
}

// Records of one byte for a key's length, one for a value's, then both.
unsigned read_lmdb(View bytes) {
  SampleGroups groups("fuzz");
  std::uint64_t place = 0;
  while (bytes.size() >= 2) {
    const std::size_t key = std::to_integer<std::size_t>(bytes[0]);
    const std::size_t value = std::to_integer<std::size_t>(bytes[1]);
    bytes = bytes.subspan(2);
    if (key + value > bytes.size()) break;
    groups.add(text_of(bytes.first(key)), place++, value, text_of(bytes.subspan(key, value)));
    bytes = bytes.subspan(key + value);
  }
  groups.finish();
  return static_cast<unsigned>(groups.samples().size());
}

unsigned read_tokens(View bytes) {
  const MemoryFile memory(bytes);
  const TokenFile file(memory.path(), {.vocabulary = 1000});
  const std::int64_t windows = file.windows(4);
  std::array<std::int64_t, 4> ids{};
  unsigned sum = 0;
  for (const std::int64_t start : {std::int64_t{0}, windows / 2, windows - 1}) {
    file.copy(start, ids);
    for (const std::int64_t id : ids) sum += static_cast<unsigned>(id);
  }
  return sum;
}

// The shard's size is that of nothing: an index of another one is no index of it.
unsigned read_shard_index(View bytes) {
  static const MemoryFile memory(View{});
  static const FileReader shard(memory.path());
  std::string text = with_sum(bytes);
  // Its size and time of change stand behind the mark.
  const std::uint64_t size = shard.size();
  const std::int64_t changed = shard.changed();
  if (bytes.size() < 24) return 0;
  std::memcpy(text.data() + 8, &size, sizeof(size));
  std::memcpy(text.data() + 16, &changed, sizeof(changed));
  text = with_sum(std::as_bytes(std::span(text)).first(bytes.size()));
  const auto index = from_bytes(text, shard);
  return index ? static_cast<unsigned>(index->samples.size()) : 0;
}

unsigned read_folder_index(View bytes) {
  const auto index = folder_index_from(with_sum(bytes));
  if (!index) return 0;
  unsigned sum = 0;
  for (const FolderIndex::File& file : index->files) {
    const FolderIndex::Folder& folder = index->folders.at(file.folder);
    sum += static_cast<unsigned>(index->names.substr(file.name, file.length).size() +
                                 index->walked.at(folder.path).path.size() +
                                 index->class_folders.at(folder.class_folder).size());
  }
  return sum;
}

unsigned read(Reader reader, View bytes) {
  switch (reader) {
    case Reader::image: return read_image(bytes);
    case Reader::tar: return read_tar(bytes);
    case Reader::idx: return read_idx(bytes);
    case Reader::lmdb: return read_lmdb(bytes);
    case Reader::tokens: return read_tokens(bytes);
    case Reader::shard_index: return read_shard_index(bytes);
    case Reader::folder_index: return read_folder_index(bytes);
  }
  return 0;
}

}  // namespace
}  // namespace yoke::feed

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke::feed;
  if (size == 0) return 0;
  [[maybe_unused]] volatile unsigned sum = 0;  // keeps the reads
  try {
    sum = read(static_cast<Reader>(data[0] % kReaders.size()),
               std::as_bytes(std::span(data + 1, size - 1)));
  } catch (const yoke::Error&) {
    // A damaged file is an expected outcome; any other exception ends the fuzzer.
  }
  return 0;
}

#ifndef YOKE_LIBFUZZER

namespace yoke::feed {
namespace {

std::string behind(Reader reader, View bytes) {
  return std::string(1, static_cast<char>(reader)) +
         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string headed_tokens() {
  std::array<std::int32_t, 256> head{20'240'520, 1, 5};
  std::string bytes(reinterpret_cast<const char*>(head.data()), sizeof(head));
  return bytes + std::string("\1\0\2\0\3\0\4\0\5\0", 10);
}

const std::string kPlainTokens("\1\0\2\0\3\0\4\0\5\0", 10);

std::string shard_index() {
  const MemoryFile memory{View{}};
  ShardIndex index;
  index.samples = {{0, 0, 3, 0, 1}, {0, 0, 4, 1, 1}};
  index.keys = "ab";
  return to_bytes(index, FileReader(memory.path()));
}

std::string folder_index() {
  FolderIndex index;
  index.class_folders = {"cat", "dog"};
  index.hidden = {".x"};
  index.walked = {{"", 1, 2}, {"cat", 3, 4}, {"dog", 5, 6}};
  index.folders = {{1, 0}, {2, 1}};
  index.files = {{0, 5, 0}, {5, 5, 1}};
  index.names = "1.jpg2.jpg";
  return to_bytes(index);
}

// The target puts it back.
View without_sum(const std::string& bytes) {
  return bytes_of(bytes).first(bytes.size() - sizeof(std::uint64_t));
}

// Sound files to begin with, each behind the byte that chooses its reader.
std::vector<std::string> seeds() {
  const Image image = picture(48, 40);
  const std::vector<std::uint8_t> rows = rgb(image);
  const View pixels = std::as_bytes(std::span(rows));
  const std::string tar = tar_bytes({{"a/1.jpg", "image"}, {"a/1.cls", "3"}, {"a/2.png", "other"}});
  const std::string idx("\0\0\x08\x02\0\0\0\2\0\0\0\3abcdef", 18);
  return {behind(Reader::image, jpeg_file(image, {.orientation = 6})),
          behind(Reader::image, jpeg_file(image, {.progressive = true})),
          behind(Reader::image, jpeg_file(image, {.cmyk = true})),
          behind(Reader::image, png_file(48, 40, {}, pixels)),
          behind(Reader::image, png_file(48, 40, {.interlaced = true}, pixels)),
          behind(Reader::tar, bytes_of(tar)),
          behind(Reader::idx, bytes_of(idx)),
          behind(Reader::lmdb, bytes_of(std::string("\5\4"
                                                    "a.jpgfile"
                                                    "\5\1"
                                                    "a.cls7",
                                                    19))),
          behind(Reader::tokens, bytes_of(kPlainTokens)),
          behind(Reader::tokens, bytes_of(headed_tokens())),
          behind(Reader::shard_index, without_sum(shard_index())),
          behind(Reader::folder_index, without_sum(folder_index()))};
}

constexpr std::string_view kTelling("\0\x01\x7F\x80\xFF\xD8\xD9\xDA\xC0\xC2\xC4 07x", 15);

}  // namespace
}  // namespace yoke::feed

int main(int argc, char** argv) {
  using namespace yoke::feed;
  const std::vector<std::string> inputs = seeds();
  for (const std::string& input : inputs) {  // a file that no reader takes would find nothing
    (void)read(static_cast<Reader>(input[0]), bytes_of(input).subspan(1));
  }
  return yoke::fuzz::run(argc, argv, inputs, kTelling, kReaders);
}

#endif
