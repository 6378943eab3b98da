#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/core/clock.hpp"
#include "yoke/core/json.hpp"
#include "yoke/optim/schedule.hpp"
#include "yoke/precision/autocast.hpp"
#include "yoke/train/any_module.hpp"
#include "yoke/train/best.hpp"
#include "yoke/train/logger.hpp"
#include "yoke/train/metrics.hpp"

namespace yoke::comm {
class World;
}
namespace yoke::data {
class DataLoader;
}
namespace yoke::optim {
class Optimizer;
}

namespace yoke::train {

/// How one model trains on several devices.
enum class Parallel {
  ddp,   ///< one process a device: DistributedDataParallel over the ranks of the world, one rank
         ///< included
  dp,    ///< one process for all devices: DataParallel
  none,  ///< one device, no wrapper
};

/// From output and target to a scalar: the mean over the batch's rows.
using LossFunction = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// An optimizer step that has just been done, as this rank saw it. The loss is not in it: reading
/// it would make the host wait for the device at every step; loggers get means.
struct StepReport {
  std::int64_t epoch = 0;
  std::int64_t epoch_step = 0;   ///< steps of this epoch done
  std::int64_t epoch_steps = 0;  ///< of all its steps
  std::int64_t step = 0;         ///< steps of the run done
  std::int64_t rows = 0;         ///< of this rank
  double lr = 0;                 ///< with which the step was done
};

struct EpochReport {
  std::int64_t epoch = 0;  ///< that has just ended, from 0
  std::int64_t step = 0;   ///< steps of the run done
  double loss = 0;         ///< mean over the epoch's samples, all ranks
  NamedValues evaluation{};
};

/// Where and how often a run is saved so that it can go on. The run that goes on from a checkpoint
/// gives the same bits as one that was never interrupted: on the same number of ranks, and with
/// operations that are deterministic.
struct CheckpointOptions {
  std::filesystem::path folder{};  ///< of all checkpoints of the run; see checkpoint::Manager
  std::int64_t every = 0;          ///< optimizer steps; 0: at the end of each epoch; -1: only where
                                   ///< the run is told to stop
  std::int64_t keep = 3;           ///< of the newest; 0: all
  std::int64_t keep_every = 0;     ///< and those of steps that this divides; 0: none
  bool resume = false;             ///< go on from the newest whole one, if there is any
  core::Json about{};              ///< kept in each: the recipe, versions, whatever tells the run
};

/// Which optimizer steps of a run are recorded, counted from 0, and where: `folder`/rank<r>.json
/// is a trace for ui.perfetto.dev, summary<r>.json says where the time went; rank 0 prints it too.
struct ProfileOptions {
  std::int64_t first = 0;
  std::int64_t end = 0;  ///< the one after the last; 0: nothing is recorded
  std::filesystem::path folder{};
  bool nvtx = false;  ///< operators of the whole run as NVTX ranges, on a card
};

struct TrainerOptions {
  Parallel parallel = Parallel::ddp;
  std::vector<int> device_ids{};  ///< of dp
  LossFunction loss{};            ///< cross entropy if empty
  MetricFunction metrics{};       ///< where both are empty: accuracy

  precision::Precision precision = precision::Precision::fp32;  ///< fp16 scales gradients by itself
  bool capture = false;  ///< on a card: replay full batches from a CUDA graph; see Step
  std::optional<bool> channels_last{};  ///< lay the model's 4-D weights out as N, H, W, C, and with
                                        ///< them all that convolutions write; nothing: on a card

  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;   ///< optimizer steps; 0: no limit
  std::int64_t accumulate = 1;  ///< micro-batches per optimizer step
  double clip_norm = 0;         ///< largest norm of all gradients; 0: off
  std::optional<optim::Schedule> schedule{};
  std::uint64_t seed =
      0;  ///< of masks (dropout): mixed with the rank, so that ranks drop different elements
  double ema =
      0;  ///< decay of averaged weights, which are then evaluated and left in the model; 0: off

  std::int64_t eval_every = 1;  ///< epochs between evaluations; 0: only at the end
  Monitor monitor{};            ///< what the next two watch
  std::int64_t early_stop = 0;  ///< stop after so many evaluations without a better one; 0: never
  bool keep_best = false;       ///< leave the best evaluation's weights in the model, not the last

  std::int64_t log_every = 50;                     ///< optimizer steps
  std::vector<std::shared_ptr<Logger>> loggers{};  ///< called on rank 0
  std::function<void(const StepReport&)> on_step{};
  std::function<bool(const EpochReport&)>
      on_epoch{};  ///< true on any rank stops all after this epoch
  std::optional<CheckpointOptions> checkpoints{};
  /// The signal by which this process was told to stop, 0: none; asked after steps. Where one rank
  /// was told, all stop after the same step and the run is saved there.
  std::function<int()> stop_signal{};
  ProfileOptions profile{};
  double stop_agreement_seconds = 0.25;  ///< between those questions; 0: after each step
  std::function<void()> on_best{};       ///< on every rank, the model holding the weights to keep
  std::optional<core::Clock::Wall>
      started{};  ///< of the program; default: launch::user_start_time()
};

struct TrainResult {
  std::string reason =
      "done";          ///< done, max steps, early stop, stopped by on_epoch, stopped by SIGTERM
  int stopped_by = 0;  ///< the signal that stop_signal gave on some rank; 0: none
  std::int64_t epochs = 0;      ///< begun
  std::int64_t resumed_at = 0;  ///< step of the checkpoint from which it went on; 0: none
  std::int64_t steps = 0;
  std::int64_t samples = 0;  ///< of all ranks
  double loss = 0;           ///< mean over the last epoch's samples
  double seconds = 0;        ///< of training, without evaluation
  double data_wait = 0;      ///< seconds of them in which this rank's steps had no batch
  double seconds_to_first_step =
      0;  ///< from the start of the program to the end of the first optimizer step
  double samples_per_second = 0;  ///< samples / seconds
  NamedValues
      evaluation{};  ///< of the weights that are left in the model; empty without validation data
};

struct TrainerState;  // known to the sources only

/// The optimizer steps of a run, for the schedule.
[[nodiscard]] std::int64_t optimizer_steps(const data::DataLoader& loader,
                                           const TrainerOptions& options);

/// The training loop: epochs over a loader, accumulation, clipping, schedule, evaluation, early
/// stop, logs, telemetry.
///
///   Trainer trainer(model, world, {.epochs = 3, .loggers = {json_logger("log.jsonl")}});
///   optim::SGD optimizer(model->named_parameters(), {.lr = 0.1, .momentum = 0.9});
///   const TrainResult result = trainer.fit(train_loader, optimizer, &test_loader);
///
/// Model: any module with forward(Tensor) -> Tensor, on world.device().
/// Exactness: one step of N ranks with K micro-batches is the step of one rank on the joined batch,
/// the last short one
///   included; evaluation counts each sample once; losses and metrics are means over samples.
/// Ranks: construction, fit() and evaluate() are collective.
/// Owns: the wrapper. Shares the model. Borrows world, loaders and optimizer.
/// Threads: one at a time. Streams: the caller's; on a card the host waits for the device every
/// log_every steps only. Errors: corrupt_data for a loss that is not finite, with step, rank, value
/// and samples: at once on the CPU, within
///   log_every steps on a card; what loader, model, loss, loggers and hooks throw; those of
///   comm::Group where another rank failed. Then the trainer is to be destroyed.
/// Cost: per step some clock readings and one telemetry record (under 2 us); per log_every steps
/// one all-reduce of three
///   numbers on the host.
class Trainer {
 public:
  Trainer(AnyModule model, comm::World& world, TrainerOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains; with `validation`, evaluates every eval_every epochs and at the end. Once per trainer.
  TrainResult fit(data::DataLoader& training, optim::Optimizer& optimizer,
                  data::DataLoader* validation = nullptr);

  /// "loss" and the metrics: exact means over the loader's samples, in evaluation mode. Puts the
  /// mode back.
  [[nodiscard]] NamedValues evaluate(data::DataLoader& loader);

 private:
  std::unique_ptr<TrainerState> state_;
};

}  // namespace yoke::train
