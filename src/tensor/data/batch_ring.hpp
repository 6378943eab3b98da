#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "schedule.hpp"
#include "yoke/data/batch.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/data/dataset.hpp"
#include "yoke/feed/slot_ring.hpp"
#include "yoke/feed/worker_count.hpp"

namespace yoke::data {

/// Memory of one batch on the host.
struct Slot {
  at::Tensor input;                   // [batch_size, ...]
  at::Tensor target;                  // [batch_size, ...]
  std::vector<std::int64_t> indices;  // batch_size
  std::vector<std::uint8_t> good;     // batch_size
  NamedTensors fields{};              // of a data set that makes whole batches, in place of the two
};

struct BatchRingOptions {
  std::int64_t batch_size = 1;
  unsigned workers = 0;
  bool adapt_workers = false;  ///< fewer of them where the reader does not wait
  std::int64_t slots = 1;
  std::int64_t memory_budget = 0;  ///< bytes; 0: none; takes slots away
  bool pinned = false;
  std::chrono::milliseconds timeout{300'000};
};

/// Fills batches on the host ahead of their reader, after a schedule.
///
/// Threads: one at a time. Errors: as feed::SlotRing; what is wrong with a sample names it.
class BatchRing {
 public:
  BatchRing(std::shared_ptr<const Dataset> dataset, const BatchRingOptions& options);
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  /// Drops everything and begins at the schedule's ticket 0.
  void start(std::unique_ptr<const Schedule> schedule);

  /// Waits for the next batch and holds its slot until release(). The batch's tensors are views of
  /// the slot, or copies where rows had to be left out.
  [[nodiscard]] Batch next();
  [[nodiscard]] bool has_next() const { return ring_.has_next(); }

  /// Gives back the oldest slot that is held. Memory that somebody still looks at is left to them
  /// and replaced.
  void release();

  [[nodiscard]] feed::SlotRing::Report report() const { return ring_.report(); }

  /// Of all slots.
  [[nodiscard]] std::int64_t host_bytes() const noexcept {
    return static_cast<std::int64_t>(slots_.size()) * slot_bytes_;
  }

  /// Rows that were left out of the batches handed out.
  [[nodiscard]] std::int64_t left_out() const noexcept { return left_out_; }

 private:
  [[nodiscard]] Slot make_slot() const;
  [[nodiscard]] Slot slot_in(const at::Tensor& slab, std::int64_t number) const;
  void adapt_workers();
  void fill(const feed::Piece& piece);
  void check_classes(const Request& request, const at::Tensor& target,
                     std::span<const std::uint8_t> good) const;
  void leave_out_bad(const Slot& slot, Batch& batch);

  std::shared_ptr<const Dataset> dataset_;
  SampleLayout layout_;
  BatchRingOptions options_;
  std::int64_t slot_bytes_;
  std::int64_t num_classes_;
  std::vector<Slot> slots_;
  std::size_t oldest_held_ = 0;
  std::int64_t left_out_ = 0;
  feed::WorkerCount worker_count_;
  feed::SlotRing::Report window_;  // when the last window of worker_count_ began
  std::chrono::steady_clock::time_point window_start_;
  std::unique_ptr<const Schedule> schedule_;
  feed::SlotRing ring_;  // last: its threads use the rest
};

}  // namespace yoke::data
