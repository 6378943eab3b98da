#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "batch_ring.hpp"
#include "yoke/data/batch.hpp"

namespace yoke::data {

/// How batches come from the ring to the loader's device. Threads: one at a time.
class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  /// The next batch of the ring's schedule. The caller has dropped the one before, or keeps it.
  [[nodiscard]] virtual Batch next() = 0;

  /// Forgets what is on its way. The ring is started anew after this.
  virtual void drop() = 0;
};

/// Batches where the ring made them, without a copy. Borrows the ring.
[[nodiscard]] std::unique_ptr<BatchSource> host_batches(BatchRing& ring);

/// Batches on a card, copied two ahead. Borrows the ring.
[[nodiscard]] std::unique_ptr<BatchSource> device_batches(BatchRing& ring, at::Device device);

}  // namespace yoke::data
