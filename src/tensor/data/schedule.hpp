#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "yoke/feed/order.hpp"
#include "yoke/feed/position.hpp"
#include "yoke/feed/shard.hpp"

namespace yoke::data {

/// What the batches of a run hold, numbered through its epochs: ticket 0 is the first one after
/// `start`, and the last of an epoch is followed by the first of the next, so that no queue runs
/// empty between epochs.
///
/// Threads: any. Errors: those of feed::Plan.
class Schedule {
 public:
  class Step {
   public:
    Step(const feed::Plan& plan, std::int64_t epoch, std::int64_t step)
        : plan_(&plan), epoch_(epoch), step_(step) {}

    [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_; }
    [[nodiscard]] std::int64_t index() const noexcept { return plan_->first_step() + step_; }
    [[nodiscard]] std::int64_t rows() const noexcept { return plan_->rows(step_); }
    [[nodiscard]] std::int64_t global_rows() const noexcept { return plan_->global_rows(step_); }
    [[nodiscard]] std::int64_t position(std::int64_t row) const noexcept {
      return plan_->position(step_, row);
    }
    /// Samples of the epoch over all ranks once this step is done.
    [[nodiscard]] std::int64_t handed_out() const noexcept { return plan_->handed_out(step_ + 1); }

   private:
    const feed::Plan* plan_;
    std::int64_t epoch_;
    std::int64_t step_;
  };

  /// `options` describe a whole epoch; start.samples tells where its first epoch begins.
  Schedule(const feed::PlanOptions& options, feed::Shuffle shuffle, const feed::Position& start);

  [[nodiscard]] Step step(std::int64_t ticket) const noexcept;
  [[nodiscard]] std::shared_ptr<const feed::Order> order(std::int64_t epoch) const;

  [[nodiscard]] std::uint64_t seed() const noexcept { return start_.seed; }
  [[nodiscard]] std::int64_t steps_of_first() const noexcept { return first_.steps(); }
  [[nodiscard]] std::int64_t steps_of_whole() const noexcept { return whole_.steps(); }

 private:
  feed::Position start_;
  feed::Shuffle shuffle_;
  feed::Plan whole_;
  feed::Plan first_;

  // Batches of two epochs may be in the making at a time.
  mutable std::mutex mutex_;
  mutable std::array<std::pair<std::int64_t, std::shared_ptr<const feed::Order>>, 2> orders_;
};

}  // namespace yoke::data
