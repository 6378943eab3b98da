// Times windows of a token file into batches beside a copy of the same memory.
//
//   libexec/yoke/yoke-bench-tokens FILE [ROUNDS]
//
// Prints one JSON object of tokens/s, medians over rounds in turn: `ours` copies windows of 1025
// ids at random places into a batch of 64, `copy` copies as many bytes of the file by memcpy into
// the same batch. Where the tokens are checked against the vocabulary is part of `ours`.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/feed/order.hpp"
#include "yoke/feed/token_file.hpp"

namespace {

using namespace yoke;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWindow = 1025;
constexpr std::int64_t kRows = 64;
constexpr std::int64_t kBatches = 200;

class Bench {
 public:
  explicit Bench(const char* path)
      : file_(path, {.vocabulary = 50'257}),
        bytes_(core::read_file(path)),
        order_(7, 0, file_.windows(kWindow)),
        batch_(kRows * kWindow) {}

  // Tokens per second.
  template <class Row>
  double rate(const Row& row) {
    const auto begin = Clock::now();
    std::int64_t next = 0;
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      for (std::int64_t i = 0; i < kRows; ++i, ++next) row(order_[next % order_.length()], i);
    }
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    return static_cast<double>(kBatches * kRows * kWindow) / seconds.count();
  }

  double ours() {
    return rate([&](std::int64_t start, std::int64_t row) {
      file_.copy(start, {batch_.data() + row * kWindow, static_cast<std::size_t>(kWindow)});
    });
  }

  // As many bytes as `ours` writes: ids of eight bytes.
  double copy() {
    const std::size_t row_bytes = kWindow * sizeof(std::int64_t);
    const std::size_t places = bytes_.size() - row_bytes;
    return rate([&](std::int64_t start, std::int64_t row) {
      std::memcpy(batch_.data() + row * kWindow,
                  bytes_.data() + 2 * static_cast<std::size_t>(start) % places, row_bytes);
    });
  }

 private:
  feed::TokenFile file_;
  std::string bytes_;
  feed::Permutation order_;
  std::vector<std::int64_t> batch_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: yoke-bench-tokens FILE [ROUNDS]\n", stderr);
    return 2;
  }
  try {
    Bench bench(argv[1]);
    std::vector<double> ours;
    std::vector<double> copy;
    for (int round = argc > 2 ? std::atoi(argv[2]) : 15; round > 0; --round) {
      ours.push_back(bench.ours());
      copy.push_back(bench.copy());
    }
    const core::Json result{{"ours", median(ours)}, {"copy", median(copy)}};
    std::printf("%s\n", core::json_line(result).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yoke-bench-tokens: %s\n", error.what());
    return 1;
  }
}
