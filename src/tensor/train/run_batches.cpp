#include "run_batches.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include "command_parts.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/dataset.hpp"
#include "yoke/optim/sgd.hpp"
#include "yoke/precision/autocast.hpp"
#include "yoke/start/run_folder.hpp"
#include "yoke/train/batch_finder.hpp"

namespace yoke::train {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;

constexpr std::int64_t kFirstBatch = 8;
constexpr int kTrialSteps = 20;
constexpr double kMostOfMemory = 0.92;  // captured graphs, NCCL and the last batch want the rest

// A batch as the loader would bring it; what the pixels show does not matter.
std::pair<at::Tensor, at::Tensor> batch_like(const data::Dataset& images, std::int64_t rows,
                                             at::Device device) {
  const data::SampleLayout layout = images.layout();
  std::vector<std::int64_t> input{rows};
  std::vector<std::int64_t> target{rows};
  input.insert(input.end(), layout.input_sizes.begin(), layout.input_sizes.end());
  target.insert(target.end(), layout.target_sizes.begin(), layout.target_sizes.end());
  const at::TensorOptions there = at::TensorOptions(device);
  at::Tensor pixels = at::ones(input, there.dtype(layout.input_dtype));
  if (layout.channels_last) pixels = pixels.contiguous(at::MemoryFormat::ChannelsLast);
  return {images.finished(pixels), at::zeros(target, there.dtype(layout.target_dtype))};
}

void require_room(at::Device device, std::int64_t batch) {
  const comm::DeviceMemory memory = comm::device_memory(device);
  const double most = kMostOfMemory * static_cast<double>(comm::device_capacity(device));
  TORCH_CHECK_WITH(OutOfMemoryError, static_cast<double>(memory.peak_reserved) <= most, "batch ",
                   batch, " leaves less than 8 % of the device's memory");
}

// Some steps with `rows` samples, on a model of their own.
void try_batch(const settings::TrainSettings& values, comm::World& world,
               const data::Dataset& images, const MakeModel& make, std::int64_t rows) {
  const at::Device device = home_device(world, values);
  comm::reset_peak_memory(device);
  AnyModule model = make();
  model->train();
  std::vector<std::pair<std::string, at::Tensor>> trained;
  std::int64_t numel = 0;
  for (const auto& item : model->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    trained.emplace_back(item.key(), item.value());
    numel += item.value().numel();
  }
  // Two slots a parameter, as AdamW's: SGD's step with momentum, and as much again where it
  // applies.
  optim::SGD optimizer(trained, {.lr = 0, .momentum = 0.9});
  const bool adamw = values.optimizer == settings::Optimizer::adamw;
  const at::Tensor second =
      at::empty({adamw ? numel : 0}, at::TensorOptions(device).dtype(at::kFloat));
  // Averaging over ranks holds one more set of gradients.
  const at::Tensor buckets =
      at::empty({world.size() > 1 ? numel : 0}, at::TensorOptions(device).dtype(at::kFloat));
  const precision::Precision precision = precision_for(values, device);
  const auto [input, target] = batch_like(images, rows, device);
  for (int step = 0; step < kTrialSteps; ++step) {
    optimizer.zero_grad();
    at::Tensor loss;
    {
      const precision::Autocast autocast(precision, device);
      loss = at::cross_entropy_loss(model.forward(input), target);
    }
    loss.backward();
    optimizer.step();
  }
  comm::synchronize(device);
  require_room(device, rows);
}

std::int64_t largest_that_fits(const settings::TrainSettings& values, comm::World& world,
                               const data::Dataset& images, const MakeModel& make) {
  if (!world.device().is_cuda()) {
    if (world.is_main()) {
      core::say(core::Level::warning,
                text("--batch auto: a CPU's memory sets no limit here; --batch-size ",
                     values.batch_size, " it is"));
    }
    return values.batch_size;
  }
  const std::int64_t share = std::max<std::int64_t>(1, images.size() / world.size());
  const std::int64_t fits = find_batch_size(
      {.start = std::min(kFirstBatch, share), .most = share},
      [&](std::int64_t rows) { try_batch(values, world, images, make, rows); }, world.host_group());
  return fits;
}

// Rank 0's file for all: a folder of each node's own, or a slow network's view of it, must not part
// the ranks.
std::optional<RunBatches> kept_by_rank_0(const fs::path& run, comm::World& world) {
  at::Tensor told = at::zeros({3}, at::kLong);
  auto* numbers = told.data_ptr<std::int64_t>();
  const fs::path file = run / start::RunFiles::kBatches;
  std::error_code error;
  if (world.is_main() && fs::exists(file, error)) {
    const Json json = core::parse_json(core::read_file(file), file.string());
    numbers[0] = json.at("batch");
    numbers[1] = json.at("accumulate");
    numbers[2] = json.at("ranks");
  }
  if (world.size() > 1) world.host_group().broadcast(told, 0);
  if (numbers[0] < 1 || numbers[1] < 1 || numbers[2] < 1) return {};
  return RunBatches{.batch = numbers[0], .accumulate = numbers[1], .ranks = numbers[2]};
}

std::int64_t global_of(const RunBatches& batches) {
  return batches.batch * batches.accumulate * batches.ranks;
}

// The run's global batch over the ranks of now.
RunBatches taken_up(const RunBatches& kept, comm::World& world) {
  if (kept.ranks == world.size()) return kept;
  RunBatches now = kept;
  if (global_of(kept) % world.size() != 0) {
    if (world.is_main()) {
      core::say(core::Level::warning,
                text("global batch ", global_of(kept), " is no multiple of ", world.size(),
                     " ranks: steps are of ", kept.batch * kept.accumulate * world.size(),
                     " samples from here on"));
    }
    return now;
  }
  const BatchPlan plan = plan_batches(global_of(kept), kept.batch, world.size());
  now.batch = plan.batch;
  now.accumulate = plan.accumulate;
  if (world.is_main()) {
    core::say(core::Level::info,
              text("global batch ", global_of(kept), " over ", world.size(), " ranks instead of ",
                   kept.ranks, ": ", plan.batch, " samples x ", plan.accumulate, " a step each"));
  }
  return now;
}

}  // namespace

RunBatches settle_batches(const settings::TrainSettings& values, comm::World& world,
                          const data::Dataset& images, const MakeModel& make, bool anew) {
  if (!anew) {
    if (const auto kept = kept_by_rank_0(values.out, world)) return taken_up(*kept, world);
  }
  RunBatches batches{
      .batch = values.batch_size, .accumulate = values.accumulate, .ranks = world.size()};
  if (values.auto_batch) {
    batches.batch = largest_that_fits(values, world, images, make);
    if (world.is_main())
      core::say(core::Level::info, text("batch size ", batches.batch, " per rank"));
  }
  if (values.global_batch > 0) {
    const BatchPlan plan = plan_batches(values.global_batch, batches.batch, world.size());
    batches.batch = plan.batch;
    batches.accumulate = plan.accumulate;
  }
  return batches;
}

void keep_batches(const fs::path& run, const RunBatches& batches, bool anew) {
  const fs::path file = run / start::RunFiles::kBatches;
  std::error_code error;
  if (!anew && fs::exists(file, error)) return;
  core::write_atomically(file, core::json_text({{"batch", batches.batch},
                                                {"accumulate", batches.accumulate},
                                                {"ranks", batches.ranks},
                                                {"global_batch", global_of(batches)}}));
}

}  // namespace yoke::train
