// Feeds damaged files to the readers of room feed. Whatever the bytes, a reader returns or throws
// yoke::Error.
//
// The first byte chooses the reader: 0 images, 1 tar archives, 2 IDX files. With libFuzzer (clang
// -fsanitize=fuzzer, -DYOKE_LIBFUZZER) LLVMFuzzerTestOneInput is the target; otherwise main()
// mutates sound files for so many seconds:
//
//   feed_fuzz_test SECONDS [SEED]

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../sample_groups.hpp"
#include "../tar_reader.hpp"
#include "../tests/image_files.hpp"
#include "../tests/tar_bytes.hpp"
#include "fuzz_loop.hpp"
#include "yoke/core/error.hpp"
#include "yoke/feed/decode.hpp"
#include "yoke/feed/idx.hpp"

namespace yoke::feed {
namespace {

using View = std::span<const std::byte>;

enum class Reader : std::uint8_t { image, tar, idx };

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

unsigned read(Reader reader, View bytes) {
  switch (reader) {
    case Reader::image: return read_image(bytes);
    case Reader::tar: return read_tar(bytes);
    case Reader::idx: return read_idx(bytes);
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
    sum = read(static_cast<Reader>(data[0] % 3), std::as_bytes(std::span(data + 1, size - 1)));
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
          behind(Reader::idx, bytes_of(idx))};
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
  return yoke::fuzz::run(argc, argv, inputs, kTelling,
                         std::array{"images", "tar files", "IDX files"});
}

#endif
