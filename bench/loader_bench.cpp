// Times the loader beside its samples: over a folder of many names, of which no file is read.
//
//   libexec/yoke/yoke-bench-loader FOLDER SMALL_FOLDER
//   libexec/yoke/yoke-bench-loader --images FOLDER WORKERS SECONDS [STEP_MS]
//
// FOLDER is a folder of class folders with names alone; SMALL_FOLDER one of few names, for whole
// epochs. A sample is 3 x 32 x 32 bytes made of its name. Prints one JSON object:
//   index_names_per_s  names read from the folders, without a cache
//   first_batch_s      from nothing to the first batch, with the index in the cache
//   resume_s           from the state in the middle of epoch 3 to the next batch, in a new loader
//   step_ms, epoch_gap_ms  a step of 5 ms, and what a step over the end of an epoch takes beyond it
//   memory_mib         of this process with eight workers and both lists at hand (Pss)
// With --images it loads what FOLDER holds: images_per_s of RandomResizedCrop(224) and a flip into
// batches of 64, in bytes, by WORKERS threads, or as many as the loader finds (auto), for a reader
// that is busy STEP_MS (0) with each batch on the processor; workers are those at the end.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Functions.h>

#include "yoke/core/json.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/data/images.hpp"
#include "yoke/feed/image_folder.hpp"

namespace {

using namespace yoke;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 256;
constexpr unsigned kWorkers = 8;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Names final : public data::Dataset {
 public:
  explicit Names(const std::string& folder)
      : images_(std::make_shared<const feed::ImageFolder>(folder)) {}

  [[nodiscard]] std::int64_t size() const override { return images_->size(); }
  [[nodiscard]] std::int64_t num_classes() const override { return images_->num_classes(); }
  [[nodiscard]] data::SampleLayout layout() const override {
    return {.input_sizes = {3, 32, 32}, .input_dtype = at::kByte};
  }
  void fill(const data::Request& request, const data::Rows& rows) const override {
    auto* pixels = rows.input.mutable_data_ptr<std::uint8_t>();
    auto* labels = rows.target.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t index : request.indices) {
      const std::string name = images_->origin(index);
      std::fill_n(pixels, 3 * 32 * 32, static_cast<std::uint8_t>(std::hash<std::string>()(name)));
      pixels += 3 * 32 * 32;
      *labels++ = images_->label(index);
    }
  }
  [[nodiscard]] std::int64_t rows_at_once() const override { return 32; }

 private:
  std::shared_ptr<const feed::ImageFolder> images_;
};

data::DataLoader loader_over(const std::string& folder) {
  return {
      Names(folder), data::Placement{}, {.batch_size = kBatch, .seed = 7, .num_workers = kWorkers}};
}

double first_batch(const std::string& folder) {
  const auto begin = Clock::now();
  data::DataLoader loader = loader_over(folder);
  (void)loader.epoch(0).next();
  return since(begin);
}

// The batch behind the state must be the one that an undisturbed loader gives there.
double resume(const std::string& folder) {
  data::DataLoader straight = loader_over(folder);
  auto epoch = straight.epoch(3);
  for (std::int64_t i = 0; i < straight.steps() / 2; ++i) (void)epoch.next();
  const feed::Position position = straight.state();
  const data::Batch expected = *epoch.next();
  const auto begin = Clock::now();
  data::DataLoader resumed = loader_over(folder);
  resumed.load_state(position);
  auto rest = resumed.epoch(3);
  const data::Batch* batch = rest.next();
  const double seconds = since(begin);
  if (!at::equal(batch->input, expected.input) || batch->indices != expected.indices) {
    std::fputs("yoke-bench-loader: the resumed loader gives another batch\n", stderr);
    std::exit(1);
  }
  return seconds;
}

struct Gap {
  double step;
  double over_the_end;
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<long>(values.size() / 2));
  return values[values.size() / 2];
}

Gap epoch_gap(data::DataLoader& loader) {
  std::vector<double> steps;
  std::vector<double> over_the_end;
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    auto before = Clock::now();
    bool is_first = true;
    for ([[maybe_unused]] const data::Batch& batch : loader.epoch(epoch)) {
      const double waited = since(before);
      if (epoch > 0) (is_first ? over_the_end : steps).push_back(waited);
      is_first = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // what a card would be busy with
      before = Clock::now();
    }
  }
  return {1e3 * median(steps), 1e3 * median(over_the_end)};
}

double memory_mib() {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string word; lines >> word;) {
    double kib = 0;
    if (word == "Pss:" && lines >> kib) return kib / 1024;
  }
  return 0;
}

// A step on a processor: it takes a core for as long.
void be_busy(double milliseconds) {
  const auto begin = Clock::now();
  while (1e3 * since(begin) < milliseconds) {
  }
}

core::Json images_per_s(const std::string& folder, std::optional<unsigned> workers, double seconds,
                        double step_ms) {
  data::DataLoader loader(
      data::ImageFolder(
          folder,
          {feed::transforms::RandomResizedCrop(224), feed::transforms::RandomHorizontalFlip()},
          {.raw = true}),
      data::Placement{}, {.batch_size = 64, .seed = 7, .num_workers = workers, .drop_last = true});
  (void)loader.epoch(0).next();
  std::int64_t images = 0;
  const auto begin = Clock::now();
  for (std::int64_t epoch = 1;; ++epoch) {
    for (const data::Batch& batch : loader.epoch(epoch)) {
      be_busy(step_ms);
      images += batch.rows();
      if (since(begin) < seconds) continue;
      return {{"images_per_s", static_cast<double>(images) / since(begin)},
              {"workers", loader.report().workers}};
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool images = (argc == 5 || argc == 6) && std::string(argv[1]) == "--images";
  if (argc != 3 && !images) {
    std::fputs(
        "usage: yoke-bench-loader FOLDER SMALL_FOLDER | --images FOLDER WORKERS SECONDS [MS]\n",
        stderr);
    return 2;
  }
  try {
    if (images) {
      std::optional<unsigned> workers;
      if (std::string(argv[3]) != "auto") workers = static_cast<unsigned>(std::atoi(argv[3]));
      const double step_ms = argc == 6 ? std::atof(argv[5]) : 0;
      const core::Json result = images_per_s(argv[2], workers, std::atof(argv[4]), step_ms);
      std::printf("%s\n", core::json_line(result).c_str());
      return 0;
    }
    const auto begin = Clock::now();
    const std::int64_t names = feed::ImageFolder(argv[1], {.cache = false}).size();
    const double index = static_cast<double>(names) / since(begin);
    (void)feed::ImageFolder(argv[1]);  // keeps the index
    const double first = first_batch(argv[1]);
    const double resumed = resume(argv[1]);
    data::DataLoader large = loader_over(argv[1]);
    (void)large.epoch(0).next();
    data::DataLoader small = loader_over(argv[2]);
    const Gap gap = epoch_gap(small);
    const core::Json result{{"names", names},
                            {"index_names_per_s", index},
                            {"first_batch_s", first},
                            {"resume_s", resumed},
                            {"wait_ms", gap.step},
                            {"epoch_gap_ms", gap.over_the_end - gap.step},
                            {"memory_mib", memory_mib()}};
    std::printf("%s\n", core::json_line(result).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yoke-bench-loader: %s\n", error.what());
    return 1;
  }
}
