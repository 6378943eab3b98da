#include "yoke/train/batch_finder.hpp"

#include <algorithm>
#include <string>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>

#include "yoke/comm/group.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#ifdef YOKE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace yoke::train {
namespace {

using core::text;

// Puts the default generators of the CPU and of this thread's card back.
class KeptRandomStates {
 public:
  KeptRandomStates() {
    generators_.push_back(at::globalContext().defaultGenerator(at::kCPU));
#ifdef YOKE_CUDA
    if (at::hasCUDA()) generators_.push_back(at::globalContext().defaultGenerator(at::kCUDA));
#endif
    for (const at::Generator& generator : generators_) states_.push_back(generator.get_state());
  }
  ~KeptRandomStates() {
    for (std::size_t i = 0; i < generators_.size(); ++i) generators_[i].set_state(states_[i]);
  }
  KeptRandomStates(const KeptRandomStates&) = delete;
  KeptRandomStates& operator=(const KeptRandomStates&) = delete;

 private:
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> states_;
};

void give_memory_back() {
#ifdef YOKE_CUDA
  if (at::hasCUDA()) c10::cuda::CUDACachingAllocator::emptyCache();
#endif
}

class Finder {
 public:
  Finder(const BatchFinderOptions& options, const BatchTrial& trial, comm::Group& group)
      : options_(options), trial_(trial), group_(group) {}

  std::int64_t find() {
    std::int64_t fits = 0;
    std::int64_t too_large = options_.most + 1;
    for (std::int64_t batch = std::min(options_.start, options_.most);;
         batch = std::min(2 * batch, options_.most)) {
      if (!comes_through(batch)) {
        too_large = batch;
        break;
      }
      fits = batch;
      if (batch == options_.most) break;
    }
    if (fits == 0) refuse(too_large);
    if (options_.search == BatchSearch::doubling) return fits;
    while (too_large - fits > 1) {
      const std::int64_t middle = fits + (too_large - fits) / 2;
      (comes_through(middle) ? fits : too_large) = middle;
    }
    return fits;
  }

 private:
  // Collective: on every rank.
  bool comes_through(std::int64_t batch) {
    bool mine = true;
    try {
      trial_(batch);
    } catch (const c10::OutOfMemoryError&) {
      mine = false;
    }
    give_memory_back();
    at::Tensor all = at::tensor({mine ? 1.0 : 0.0}, at::kDouble);
    group_.all_reduce(all, comm::ReduceOp::minimum);
    const bool fits = all.item<double>() > 0;
    if (group_.rank() == 0) {
      core::say(core::Level::info, text("batch ", batch, " per rank: ",
                                        fits   ? "fits"
                                        : mine ? "does not fit on another rank"
                                               : "out of memory"));
    }
    return fits;
  }

  [[noreturn]] static void refuse(std::int64_t batch) {
    throw Error(Code::cuda, text("find a batch size: not even ", batch, " samples fit"),
                "use a smaller model or smaller images, or --precision bf16");
  }

  const BatchFinderOptions& options_;
  const BatchTrial& trial_;
  comm::Group& group_;
};

}  // namespace

std::int64_t find_batch_size(const BatchFinderOptions& options, const BatchTrial& trial,
                             comm::Group& host_group) {
  if (options.start < 1 || options.most < 1) {
    throw Error(Code::invalid_argument,
                text("find a batch size from ", options.start, " to ", options.most),
                "give numbers from 1 on");
  }
  const KeptRandomStates kept;
  return Finder(options, trial, host_group).find();
}

BatchPlan plan_batches(std::int64_t global, std::int64_t fits, std::int64_t ranks) {
  if (global % ranks != 0 || global < ranks) {
    const std::int64_t below = std::max(ranks, global / ranks * ranks);
    throw Error(Code::invalid_argument,
                text("global batch ", global, " over ", ranks, " ranks: no whole number each"),
                text("give ", below, " or ", below + (global < ranks ? 0 : ranks)));
  }
  const std::int64_t each = global / ranks;
  for (std::int64_t accumulate = (each + fits - 1) / fits;; ++accumulate) {
    if (each % accumulate == 0) return {each / accumulate, accumulate};
  }
}

}  // namespace yoke::train
