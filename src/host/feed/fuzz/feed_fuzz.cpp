// Feeds damaged files to the readers of room feed. Whatever the bytes, a reader returns or throws
// yoke::Error.
//
// The first byte chooses the reader: 0 images, 1 tar archives, 2 IDX files. With libFuzzer (clang
// -fsanitize=fuzzer, -DYOKE_LIBFUZZER) LLVMFuzzerTestOneInput is the target; otherwise main()
// mutates sound files for so many seconds:
//
//   feed_fuzz_test SECONDS [SEED]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "../sample_groups.hpp"
#include "../tar_reader.hpp"
#include "../tests/image_files.hpp"
#include "../tests/tar_bytes.hpp"
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

// One to eight small damages; the first byte stays.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string damage(std::string bytes) {
    for (std::size_t times = 1 + below(8); times > 0; --times) once(bytes);
    return bytes;
  }

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void once(std::string& bytes) {
    const std::size_t at = 1 + below(bytes.size());
    if (at >= bytes.size()) return bytes.push_back(static_cast<char>(below(256)));
    const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
      case 1: bytes[at] = static_cast<char>(below(256)); break;
      case 2: bytes[at] = telling(); break;
      case 3: bytes.erase(at, length); break;
      case 4: bytes.insert(at, bytes.substr(1 + below(bytes.size() - 1), length)); break;
      default: bytes.resize(1 + below(bytes.size())); break;
    }
  }

  char telling() {
    constexpr std::string_view kTelling("\0\x01\x7F\x80\xFF\xD8\xD9\xDA\xC0\xC2\xC4 07x", 15);
    return kTelling[below(kTelling.size())];
  }

  std::mt19937_64 random_;
};

int fuzz(std::chrono::seconds duration, std::uint64_t seed) {
  const std::vector<std::string> files = seeds();
  for (const std::string& file : files) {  // a file that no reader takes would find nothing
    (void)read(static_cast<Reader>(file[0]), bytes_of(file).subspan(1));
  }
  Mutator mutator(seed);
  std::array<std::size_t, 3> runs{};
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
    const std::string& file = files[mutator.below(files.size())];
    const std::string damaged = mutator.damage(file);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(damaged.data()), damaged.size());
    ++runs[static_cast<std::size_t>(file[0])];
  }
  std::printf("seed %llu: %zu images, %zu tar, %zu IDX inputs, no crash\n",
              static_cast<unsigned long long>(seed), runs[0], runs[1], runs[2]);
  return 0;
}

}  // namespace
}  // namespace yoke::feed

int main(int argc, char** argv) {
  const long seconds = argc > 1 ? std::atol(argv[1]) : 5;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return yoke::feed::fuzz(std::chrono::seconds(seconds), seed);
}

#endif
