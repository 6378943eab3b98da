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

// Settles --batch-size, --accumulate, --global-batch and --batch auto; collective. Unless `anew`,
// what rank 0 finds kept in values.out counts more.
// Errors: invalid_argument where the global batch is no multiple of the ranks; those of
// find_batch_size().
[[nodiscard]] RunBatches settle_batches(const settings::TrainSettings& values, comm::World& world,
                                        const data::Dataset& images, const MakeModel& make,
                                        bool anew);

// Rank 0, once the model is there: writes them into the run's folder; unless `anew`, only where
// none are kept, so that later parts of the run see how it began. Errors: io.
void keep_batches(const std::filesystem::path& run, const RunBatches& batches, bool anew);

}  // namespace yoke::train
