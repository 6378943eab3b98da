#include "data_bench.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "yoke/feed/image_rows.hpp"
#include "yoke/feed/order.hpp"
#include "yoke/feed/transforms.hpp"

namespace yoke::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Calls one(i) for i = 0, 1, ... for so long; calls per second.
template <class One>
double rate(double seconds, const One& one) {
  const auto begin = Clock::now();
  std::int64_t count = 0;
  while (since(begin) < seconds) one(count++);
  return static_cast<double>(count) / since(begin);
}

// The same images in the same order for every stage.
class Stages {
 public:
  explicit Stages(std::shared_ptr<const feed::EncodedImages> images)
      : images_(images),
        order_(1, 0, images->size()),
        rows_(std::move(images),
              feed::Transforms({feed::transforms::RandomResizedCrop{},
                                feed::transforms::RandomHorizontalFlip{}}),
              {.bad_samples = feed::BadSamples::skip, .most_bad = 1'000'000'000}) {}

  double reading(double seconds) {
    std::vector<std::byte> memory;
    std::atomic<unsigned> sum = 0;
    return rate(seconds, [&](std::int64_t i) {
      const auto bytes = images_->read(index(i), memory);
      for (std::size_t at = 0; at < bytes.size(); at += 4096)
        sum += std::to_integer<unsigned>(bytes[at]);
    });
  }

  double decoding(double seconds) {
    feed::ImageDecoder decoder;
    feed::Image image;
    std::vector<std::byte> memory;
    return rate(seconds, [&](std::int64_t i) {
      try {
        decoder.open(images_->read(index(i), memory));
        decoder.read(image);
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch): yoke data verify lists them
      }
    });
  }

  double filling(double seconds, unsigned workers) {
    std::atomic<std::int64_t> next = 0;
    const auto begin = Clock::now();
    const auto work = [&] {
      std::vector<std::byte> row(rows_.transforms().bytes());
      while (since(begin) < seconds) {
        const std::int64_t i = next++;
        rows_.fill({1, i / images_->size(), index(i)}, row);
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(next.load()) / since(begin);
  }

 private:
  [[nodiscard]] std::int64_t index(std::int64_t i) const { return order_[i % images_->size()]; }

  std::shared_ptr<const feed::EncodedImages> images_;
  feed::Permutation order_;
  feed::ImageRows rows_;
};

double rounded(double value, double parts) { return std::round(value * parts) / parts; }

}  // namespace

core::Json bench_data(const std::shared_ptr<const feed::EncodedImages>& images,
                      const DataBenchOptions& options) {
  Stages stages(images);
  (void)stages.reading(options.seconds / 10);  // files come from the page cache afterwards
  const double read = stages.reading(options.seconds);
  const double decode = stages.decoding(options.seconds);
  const double one = stages.filling(options.seconds, 1);
  const double all = stages.filling(options.seconds, options.workers);
  const double reading_part = one / read;
  return {{"kind", images->kind()},
          {"samples", images->size()},
          {"read_per_s", rounded(read, 10)},
          {"decode_whole_per_s", rounded(decode, 10)},
          {"rows_per_s_one_core", rounded(one, 10)},
          {"rows_per_s", rounded(all, 10)},
          {"workers", options.workers},
          {"of_cores_times_one", rounded(all / (one * options.workers), 1000)},
          {"reading_part", rounded(reading_part, 1000)},
          {"limit", reading_part > 0.5 ? "reading" : "decoding"}};
}

}  // namespace yoke::cli
