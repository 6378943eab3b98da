#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "schedule.hpp"
#include "yoke/data/batch.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/data/dataset.hpp"
#include "yoke/feed/slot_ring.hpp"

namespace yoke::data {

/// Memory of one batch on the host.
struct Slot {
  at::Tensor input;                   // [batch_size, ...]
  at::Tensor target;                  // [batch_size, ...]
  std::vector<std::int64_t> indices;  // batch_size
};

struct BatchRingOptions {
  std::int64_t batch_size = 1;
  unsigned workers = 0;
  std::int64_t slots = 1;
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
  /// the slot.
  [[nodiscard]] Batch next();
  [[nodiscard]] bool has_next() const { return ring_.has_next(); }

  /// Gives back the oldest slot that is held. Memory that somebody still looks at is left to them
  /// and replaced.
  void release();

  [[nodiscard]] feed::SlotRing::Report report() const { return ring_.report(); }

 private:
  [[nodiscard]] Slot make_slot() const;
  void fill(const feed::Piece& piece);
  void check_classes(const Request& request, const at::Tensor& target) const;

  std::shared_ptr<const Dataset> dataset_;
  BatchRingOptions options_;
  SampleLayout layout_;
  std::int64_t num_classes_;
  std::vector<Slot> slots_;
  std::size_t oldest_held_ = 0;
  std::unique_ptr<const Schedule> schedule_;
  feed::SlotRing ring_;  // last: its threads use the rest
};

}  // namespace yoke::data
