#include "yoke/data/data_loader.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch_ring.hpp"
#include "batch_source.hpp"
#include "schedule.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"

namespace yoke::data {
namespace {

constexpr std::int64_t kMostPrefetched = 1 << 16;

void check(const DataLoaderOptions& options) {
  if (options.batch_size < 1) {
    throw Error(Code::invalid_argument,
                core::text("make a loader: batch size ", options.batch_size, " (1 or more)"));
  }
  if (options.prefetch_batches < 1 || options.prefetch_batches > kMostPrefetched) {
    throw Error(Code::invalid_argument,
                core::text("make a loader: prefetch_batches ", options.prefetch_batches, " (1 to ",
                           kMostPrefetched, ")"));
  }
}

feed::Shuffle shuffle_of(const DataLoaderOptions& options) {
  if (!options.shuffle) return feed::Shuffle::none;
  return options.torch_compat ? feed::Shuffle::torch_compat : feed::Shuffle::permutation;
}

feed::Sharding sharding_of(const DataLoaderOptions& options) {
  return options.torch_compat ? feed::Sharding::torch_compat : feed::Sharding::exact;
}

// All the cores that this rank may use, where nobody says how many threads there should be.
unsigned most_workers(const Placement& placement) {
  const int cores = device::usable_cores() / std::max(1, placement.local_world_size);
  return static_cast<unsigned>(std::max(1, cores));
}

BatchRingOptions ring_options(const DataLoaderOptions& options, const Placement& placement) {
  // Beyond those made ahead: the one that the caller holds, and one that is being copied.
  return {.batch_size = options.batch_size,
          .workers = options.num_workers.value_or(most_workers(placement)),
          .adapt_workers = !options.num_workers,
          .slots = options.prefetch_batches + 2,
          .memory_budget = options.memory_budget,
          .pinned = options.pin_memory && placement.device.is_cuda(),
          .timeout = options.timeout};
}

std::unique_ptr<BatchSource> source_of(BatchRing& ring, at::Device device) {
  return device.is_cpu() ? host_batches(ring) : device_batches(ring, device);
}

const std::shared_ptr<const Dataset>& not_null(const std::shared_ptr<const Dataset>& dataset) {
  if (!dataset) throw Error(Code::invalid_argument, "make a loader: no data set");
  return dataset;
}

// Checked before anything else that may fail: options that differ may be wrong on one rank only,
// and its peers should learn which.
Placement agreed_placement(const Dataset& dataset, comm::World& world,
                           const DataLoaderOptions& options) {
  const feed::Agreement mine{.seed = options.seed,
                             .length = dataset.size(),
                             .batch_size = options.batch_size,
                             .world_size = world.size(),
                             .drop_last = options.drop_last,
                             .shuffle = static_cast<std::int64_t>(shuffle_of(options)),
                             .sharding = static_cast<std::int64_t>(sharding_of(options)),
                             .fingerprint = dataset.fingerprint()};
  std::string bytes(sizeof mine, '\0');
  std::memcpy(bytes.data(), &mine, sizeof mine);
  std::vector<feed::Agreement> by_rank;
  for (const std::string& theirs : world.host_group().all_gather_bytes(bytes)) {
    std::memcpy(&by_rank.emplace_back(), theirs.data(), sizeof mine);
  }
  feed::require_agreement(by_rank);
  return {.rank = world.rank(),
          .world_size = world.size(),
          .device = world.device(),
          .local_world_size = world.local_size()};
}

}  // namespace

DataLoaderOptions evaluation(DataLoaderOptions options) {
  options.shuffle = false;
  options.drop_last = false;
  options.torch_compat = false;
  options.batch_transform = nullptr;
  return options;
}

struct DataLoader::State {
  State(std::shared_ptr<const Dataset> data, const Placement& where, const DataLoaderOptions& how)
      : dataset(std::move(data)),
        placement(where),
        options((check(how), how)),
        position{.seed = how.seed, .epoch = 0, .samples = 0, .length = dataset->size()},
        steps(schedule_from(position)->steps_of_whole()),
        ring(dataset, ring_options(how, where)),
        source(source_of(ring, where.device)) {}

  [[nodiscard]] std::unique_ptr<const Schedule> schedule_from(const feed::Position& start) const {
    return std::make_unique<const Schedule>(feed::PlanOptions{.length = start.length,
                                                              .batch_size = options.batch_size,
                                                              .rank = placement.rank,
                                                              .world_size = placement.world_size,
                                                              .drop_last = options.drop_last,
                                                              .sharding = sharding_of(options)},
                                            shuffle_of(options), start);
  }

  // The batches ahead belong to the epoch that begins, from its first one.
  [[nodiscard]] bool runs_into(std::int64_t epoch) const {
    if (schedule == nullptr) return false;
    const Schedule::Step next = schedule->step(ticket);
    return next.epoch() == epoch && next.index() == 0;
  }

  void start_at(const feed::Position& start) {
    auto begun = schedule_from(start);
    current = {};
    schedule = nullptr;
    source->drop();
    const Schedule* view = begun.get();
    ring.start(std::move(begun));
    schedule = view;
    ticket = 0;
  }

  const Batch* take() {
    current = {};
    try {
      current = source->next();
    } catch (...) {
      schedule = nullptr;  // the ring is of no use until it is started anew
      throw;
    }
    position.samples = schedule->step(ticket++).handed_out();
    if (current.input.defined()) current.input = dataset->finished(current.input);
    if (options.batch_transform && current.rows() > 0) options.batch_transform(current);
    return &current;
  }

  std::shared_ptr<const Dataset> dataset;
  Placement placement;
  DataLoaderOptions options;
  feed::Position position;  // of what was handed out
  std::int64_t steps;
  std::optional<feed::Position> resume;  // what load_state() set and no epoch has taken up
  std::int64_t epochs_begun = 0;

  const Schedule* schedule = nullptr;  // the ring's; null: start_at() comes next
  std::int64_t ticket = 0;             // of the next batch
  BatchRing ring;
  std::unique_ptr<BatchSource> source;
  Batch current;
};

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, const Placement& placement,
                       const DataLoaderOptions& options)
    : state_(std::make_unique<State>(not_null(dataset), placement, options)) {}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, comm::World& world,
                       const DataLoaderOptions& options)
    : DataLoader(dataset, agreed_placement(*not_null(dataset), world, options), options) {}

DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

DataLoader::Epoch DataLoader::epoch(std::int64_t epoch) {
  State& s = *state_;
  if (epoch < 0) throw Error(Code::invalid_argument, core::text("begin epoch ", epoch));
  const bool resumes = s.resume && s.resume->epoch == epoch;
  const std::int64_t samples = resumes ? s.resume->samples : 0;
  s.resume.reset();
  s.position.epoch = epoch;
  s.position.samples = samples;
  ++s.epochs_begun;
  if (samples == 0 && s.runs_into(epoch)) return {&s, s.epochs_begun, s.steps};
  s.start_at(s.position);
  return {&s, s.epochs_begun, s.schedule->steps_of_first()};
}

const Batch* DataLoader::Epoch::next() {
  if (number_ != loader_->epochs_begun) {
    throw Error(Code::invalid_argument, "take a batch: its epoch ended when another was begun",
                "make a loader of its own for each loop that runs inside another");
  }
  if (taken_ == steps_) return nullptr;
  const Batch* batch = loader_->take();
  ++taken_;
  return batch;
}

std::int64_t DataLoader::steps() const noexcept { return state_->steps; }

feed::Position DataLoader::state() const noexcept {
  return state_->resume ? *state_->resume : state_->position;
}

void DataLoader::load_state(const feed::Position& position) {
  State& s = *state_;
  const std::int64_t length = s.position.length;
  if (position.length != length) {
    throw Error(Code::invalid_argument,
                core::text("resume the loader: the state is of a data set of ", position.length,
                           " samples, and this one has ", length),
                "point the loader at the data that the run began with");
  }
  if (position.epoch < 0 || position.samples < 0) {
    throw Error(Code::corrupt_data,
                core::text("resume the loader: the state says ", position.samples,
                           " samples of epoch ", position.epoch));
  }
  ++s.epochs_begun;
  s.schedule = nullptr;  // its seed may be another
  s.position.seed = position.seed;
  s.resume = position;
}

DataLoader::Report DataLoader::report() const {
  const feed::SlotRing::Report ring = state_->ring.report();
  return {.batches = ring.handed_out,
          .waited = ring.waited,
          .ready = ring.ready,
          .workers = ring.active,
          .left_out = state_->ring.left_out(),
          .host_bytes = state_->ring.host_bytes(),
          .stages = state_->dataset->stages()};
}

const Dataset& DataLoader::dataset() const noexcept { return *state_->dataset; }
const DataLoaderOptions& DataLoader::options() const noexcept { return state_->options; }
const Placement& DataLoader::placement() const noexcept { return state_->placement; }

}  // namespace yoke::data
