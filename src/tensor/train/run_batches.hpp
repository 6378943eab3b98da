#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "yoke/settings/train_settings.hpp"
#include "yoke/train/any_module.hpp"

namespace yoke::comm {
class World;
}
namespace yoke::data {
class Dataset;
}

namespace yoke::train {

// How a run's steps are made of batches. It is kept in the run folder (batches.json), so that a run
// that goes on over another number of ranks keeps its global batch, and with it its steps and its
// rate.
struct RunBatches {
  std::int64_t batch = 0;  // per rank and micro-batch
  std::int64_t accumulate = 1;
  std::int64_t ranks = 1;  // over which the run began: what --scale-lr counts
};

// Makes the model once more, for trials of sizes.
using MakeModel = std::function<AnyModule()>;

// Settles --batch-size, --accumulate, --global-batch and --batch auto; collective. `goes_on`: the
// run in values.out is taken up.
// Errors: invalid_argument where the global batch is no multiple of the ranks; those of
// find_batch_size().
[[nodiscard]] RunBatches settle_batches(const settings::TrainSettings& values, comm::World& world,
                                        const data::Dataset& images, const MakeModel& make,
                                        bool goes_on);

// Writes them into the run's folder; of a new run, once its model is there. Errors: io.
void keep_batches(const std::filesystem::path& run, const RunBatches& batches);

}  // namespace yoke::train
