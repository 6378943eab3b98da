#include "batch_source.hpp"

namespace yoke::data {
namespace {

class HostBatches final : public BatchSource {
 public:
  explicit HostBatches(BatchRing& ring) : ring_(ring) {}

  Batch next() override {
    if (holds_slot_) ring_.release();
    holds_slot_ = false;
    Batch batch = ring_.next();
    holds_slot_ = true;
    return batch;
  }

  void drop() override { holds_slot_ = false; }

 private:
  BatchRing& ring_;
  bool holds_slot_ = false;
};

}  // namespace

std::unique_ptr<BatchSource> host_batches(BatchRing& ring) {
  return std::make_unique<HostBatches>(ring);
}

}  // namespace yoke::data
