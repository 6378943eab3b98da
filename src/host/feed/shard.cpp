#include "yoke/feed/shard.hpp"

#include <algorithm>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

// 2^31 of each: their product and the sums below stay far from 2^63.
constexpr std::int64_t kMost = std::int64_t{1} << 31;

void check(const PlanOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(Code::invalid_argument, "plan an epoch: " + what);
  };
  if (options.length < 0) refuse(core::text("the data set's length is ", options.length));
  if (options.batch_size < 1 || options.batch_size > kMost) {
    refuse(core::text("batch size ", options.batch_size, " (1 or more)"));
  }
  if (options.world_size < 1) refuse(core::text("world size ", options.world_size));
  if (options.rank < 0 || options.rank >= options.world_size) {
    refuse(core::text("rank ", options.rank, " of ", options.world_size, " ranks"));
  }
  if (options.first < 0) refuse(core::text("starts after ", options.first, " samples"));
}

// Positions that are handed out over all ranks in a whole epoch.
std::int64_t positions_of(const PlanOptions& options) {
  if (options.sharding == Sharding::exact) return options.length;
  const std::int64_t ranks = options.world_size;
  const std::int64_t each =
      options.drop_last ? options.length / ranks : (options.length + ranks - 1) / ranks;
  return each * ranks;
}

}  // namespace

Plan::Plan(const PlanOptions& options)
    : options_((check(options), options)),
      global_batch_(options.batch_size * options.world_size),
      total_(positions_of(options)) {
  if (options.sharding == Sharding::torch_compat && options.first < total_ &&
      options.first % global_batch_ != 0) {
    throw Error(Code::unsupported,
                core::text("plan an epoch: torch_compat sharding cannot start after ",
                           options.first, " samples: a step takes ", global_batch_),
                "go on with the batch size and number of ranks of before, or use exact sharding");
  }
  const std::int64_t left = std::max<std::int64_t>(0, total_ - options.first);
  steps_ = left / global_batch_;
  if (!options.drop_last && left % global_batch_ != 0) ++steps_;
  if (steps_ == 0 && options.first == 0) {
    throw Error(Code::invalid_argument,
                core::text("plan an epoch: 0 steps per epoch: ", options.length,
                           " samples, and a step takes ", global_batch_, " (batch size ",
                           options.batch_size, " on ", options.world_size, " ranks)",
                           options.drop_last ? " with drop_last" : ""),
                options.length == 0
                    ? "check the data set's folder"
                    : "set drop_last to false, or take a smaller batch or fewer ranks");
  }
}

std::int64_t Plan::global_rows(std::int64_t step) const noexcept {
  return std::min(global_batch_, total_ - options_.first - step * global_batch_);
}

std::int64_t Plan::rows(std::int64_t step) const noexcept {
  const std::int64_t all = global_rows(step);
  return all / options_.world_size + (options_.rank < all % options_.world_size ? 1 : 0);
}

std::int64_t Plan::position(std::int64_t step, std::int64_t row) const noexcept {
  const std::int64_t run = options_.first + step * global_batch_;
  if (options_.sharding == Sharding::torch_compat) {
    return (run + row * options_.world_size + options_.rank) % options_.length;
  }
  const std::int64_t all = global_rows(step);
  const std::int64_t ranks_with_one_more = all % options_.world_size;
  return run + options_.rank * (all / options_.world_size) +
         std::min<std::int64_t>(options_.rank, ranks_with_one_more) + row;
}

std::int64_t Plan::handed_out(std::int64_t steps) const noexcept {
  return std::min(options_.first + steps * global_batch_, std::max(total_, options_.first));
}

std::int64_t Plan::first_step() const noexcept {
  return (options_.first + global_batch_ - 1) / global_batch_;
}

}  // namespace yoke::feed
