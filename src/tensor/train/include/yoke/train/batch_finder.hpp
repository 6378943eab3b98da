#pragma once

#include <cstdint>
#include <functional>

namespace yoke::comm {
class Group;
}

namespace yoke::train {

/// How the largest batch that fits is looked for.
enum class BatchSearch {
  doubling,  ///< start, 2 * start, ... and the last that fitted
  binary,    ///< then halves the gap to the first that did not
};

struct BatchFinderOptions {
  std::int64_t start = 2;
  std::int64_t most = 0;  ///< never tried beyond: samples of the data set, say; 1 or more
  BatchSearch search = BatchSearch::binary;
};

/// Runs some steps with batches of so many samples, on a model and optimizer of its own, so that
/// nothing is left changed. Where memory does not suffice it throws c10::OutOfMemoryError.
/// Not collective: one rank may run out of memory where others do not.
using BatchTrial = std::function<void(std::int64_t batch)>;

/// The largest batch per rank with which `trial` comes through on every rank, the same answer on
/// all. Each trial is said at level info. Random states and torch's cached memory are as before.
/// Collective over `host_group`. Cost: a trial per size, about 2 * log2(most / start) of them.
/// Errors: out of memory with the first size is cuda, with what to change; other errors of a trial
/// go through.
[[nodiscard]] std::int64_t find_batch_size(const BatchFinderOptions& options,
                                           const BatchTrial& trial, comm::Group& host_group);

/// How a global batch is made of what fits.
struct BatchPlan {
  std::int64_t batch = 0;  ///< per rank and micro-batch
  std::int64_t accumulate = 1;
};

/// `global` = batch * accumulate * ranks with the largest batch up to `fits`. Errors:
/// invalid_argument where `global` is no multiple of `ranks`, naming the nearest that are.
[[nodiscard]] BatchPlan plan_batches(std::int64_t global, std::int64_t fits, std::int64_t ranks);

}  // namespace yoke::train
