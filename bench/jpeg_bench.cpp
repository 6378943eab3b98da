// Times training rows from JPEG files beside bare libjpeg-turbo, in turn, image by image.
//
//   libexec/yoke/yoke-bench-jpeg --rounds 15 FILE...
//
// Prints one JSON object of images/s on one thread: `ours` decodes the part that
// RandomResizedCrop(224) takes, resizes and flips it into a batch's row; `bare` decodes the whole
// file with libjpeg-turbo and nothing else; `full_resize` decodes the whole and does the same
// resize. Each image counts with its fastest round. `threads` holds ours on each number of threads.
// The row of the part must be the row of the whole, or there is no figure.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "../src/host/feed/jpeg_library.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/feed/transforms.hpp"

namespace {

using namespace yoke;
using namespace yoke::feed;
using Clock = std::chrono::steady_clock;
using File = std::vector<std::byte>;

constexpr int kRows = 64;  // of which each has its own file and crop
const transforms::RandomResizedCrop kCrop{};

File read(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void decode_bare(const File& file, std::vector<std::uint8_t>& pixels) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  pixels.resize(std::size_t{jpeg.output_width} * jpeg.output_height * 3);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = &pixels[std::size_t{jpeg.output_scanline} * jpeg.output_width * 3];
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
}

class Bench {
 public:
  explicit Bench(std::vector<File> files)
      : files_(std::move(files)),
        transforms_({kCrop, transforms::RandomHorizontalFlip{.p = 0}}),
        row_(transforms_.bytes()) {}

  void ours(int row) { fill(row, workspace_, row_); }
  void bare(int row) { decode_bare(file(row), pixels_); }
  void full_resize(int row) {
    decoder_.open(file(row));
    decoder_.read(whole_);
    Draws draws(key(row));
    const Region box = transforms::crop_box(kCrop, whole_.width(), whole_.height(), draws);
    resizer_.resize(whole_, box, {.width = 224, .height = 224}, small_);
  }

  void check(int row) {
    ours(row);
    full_resize(row);
    for (int y = 0; y < 224; ++y) {
      for (int x = 0; x < 3 * 224; ++x) {
        if (std::to_integer<int>(row_[static_cast<std::size_t>(3 * 224 * y + x)]) ==
            small_.row(y)[4 * (x / 3) + x % 3]) {
          continue;
        }
        std::fprintf(stderr, "yoke-bench-jpeg: row %d differs from that of the whole image\n", row);
        std::exit(1);
      }
    }
  }

  // Images per second on so many threads.
  double threads(unsigned count, double seconds) {
    std::atomic<int> next = 0;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    const auto work = [&] {
      TransformWorkspace workspace;
      std::vector<std::byte> row(transforms_.bytes());
      while (Clock::now() < end) fill(next++ % kRows, workspace, row);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    return next.load() / seconds;
  }

 private:
  [[nodiscard]] const File& file(int row) const {
    return files_[static_cast<std::size_t>(row) % files_.size()];
  }
  static SampleKey key(int row) { return {.seed = 7, .epoch = 0, .index = row}; }
  void fill(int row, TransformWorkspace& workspace, std::span<std::byte> out) const {
    Draws draws(key(row));
    transforms_.apply(file(row), draws, workspace, out);
  }

  std::vector<File> files_;
  Transforms transforms_;
  TransformWorkspace workspace_;
  std::vector<std::byte> row_;
  std::vector<std::uint8_t> pixels_;
  ImageDecoder decoder_;
  Image whole_;
  Image small_;
  Resizer resizer_;
};

// Of each row the fastest round; images per second over all rows.
std::array<double, 3> one_thread(Bench& bench, int rounds) {
  using Stage = void (Bench::*)(int);
  constexpr std::array<Stage, 3> kStages{&Bench::ours, &Bench::bare, &Bench::full_resize};
  std::array<std::vector<double>, 3> fastest;
  fastest.fill(std::vector<double>(kRows, 1e9));
  for (int round = 0; round < rounds; ++round) {
    for (int row = 0; row < kRows; ++row) {
      for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
        const auto begin = Clock::now();
        (bench.*kStages[stage])(row);
        double& best = fastest[stage][static_cast<std::size_t>(row)];
        best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
      }
    }
  }
  std::array<double, 3> rates{};
  for (std::size_t stage = 0; stage < rates.size(); ++stage) {
    double sum = 0;
    for (const double seconds : fastest[stage]) sum += seconds;
    rates[stage] = kRows / sum;
  }
  return rates;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  std::vector<File> files;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else {
      files.push_back(read(argv[i]));
    }
  }
  if (files.empty()) {
    std::fputs("usage: yoke-bench-jpeg [--rounds N] FILE...\n", stderr);
    return 2;
  }
  Bench bench(std::move(files));
  for (int row = 0; row < kRows; ++row) bench.check(row);
  const auto [ours, bare, full_resize] = one_thread(bench, rounds);
  core::Json threads;
  for (unsigned count = 1; count <= std::thread::hardware_concurrency(); ++count) {
    threads[std::to_string(count)] = bench.threads(count, 2);
  }
  const core::Json result{
      {"ours", ours}, {"bare", bare}, {"full_resize", full_resize}, {"threads", threads}};
  std::printf("%s\n", core::json_line(result).c_str());
}
