#include <cstddef>
#include <deque>
#include <exception>
#include <utility>

#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "batch_source.hpp"

namespace yoke::data {
namespace {

// Note [Copies to a card]
// A copy runs on its own stream, into memory that the allocator made for that stream. Three orders
// matter, each kept by one call: the caller's stream after the copy (block), the memory's next use
// after the caller's stream (record_stream), and the slot's next filling after the copy
// (synchronize, which has long come true when it is asked).
class DeviceBatches final : public BatchSource {
 public:
  DeviceBatches(BatchRing& ring, at::Device device)
      : ring_(ring),
        cards_(device.type()),
        device_(device.has_index() ? device : cards_.getDevice()),
        copies_(cards_.getStreamFromGlobalPool(device_)) {}

  Batch next() override {
    if (uploads_.empty()) {
      if (error_) std::rethrow_exception(error_);
      begin_upload();
    }
    Upload upload = std::move(uploads_.front());
    uploads_.pop_front();
    hand_over(upload);
    if (ring_.has_next()) begin_ahead();
    return std::move(upload.batch);
  }

  void drop() override {
    while (!copying_.empty()) finish_oldest_copy();
    uploads_.clear();
    error_ = nullptr;
  }

 private:
  struct Upload {
    Batch batch;
    std::shared_ptr<c10::Event> copied;
  };

  static constexpr std::size_t kMostCopies = 2;

  void hand_over(const Upload& upload) const {
    const c10::Stream caller = cards_.getStream(device_);
    upload.copied->block(caller);
    const auto follow = [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.numel() > 0) tensor.record_stream(caller);
    };
    follow(upload.batch.input);
    follow(upload.batch.target);
    for (const auto& field : upload.batch.fields) follow(field.second);
  }

  void begin_upload() {
    if (copying_.size() == kMostCopies) finish_oldest_copy();
    Batch batch = ring_.next();
    const auto copied = std::make_shared<c10::Event>(device_.type());
    {
      const c10::InferenceMode plain(false);
      const c10::StreamGuard guard(copies_);
      send(batch);
      copied->record(copies_);
    }
    copying_.push_back(copied);
    uploads_.push_back({std::move(batch), copied});
  }

  // Each tensor once: input and target may be fields too.
  void send(Batch& batch) const {
    const auto sent = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.to(device_, /*non_blocking=*/true) : tensor;
    };
    const at::Tensor input = batch.input;
    const at::Tensor target = batch.target;
    if (batch.fields.empty()) {
      batch.input = sent(input);
      batch.target = sent(target);
    }
    for (auto& [name, tensor] : batch.fields) {
      const at::Tensor there = sent(tensor);
      if (tensor.is_same(input)) batch.input = there;
      if (tensor.is_same(target)) batch.target = there;
      tensor = there;
    }
  }

  // While the caller works on its batch. An error waits until that batch's turn.
  void begin_ahead() {
    try {
      begin_upload();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void finish_oldest_copy() {
    copying_.front()->synchronize();
    copying_.pop_front();
    ring_.release();
  }

  BatchRing& ring_;
  c10::impl::VirtualGuardImpl cards_;
  at::Device device_;
  c10::Stream copies_;
  std::deque<Upload> uploads_;
  std::deque<std::shared_ptr<c10::Event>> copying_;  // one for each slot of the ring that is held
  std::exception_ptr error_;
};

}  // namespace

std::unique_ptr<BatchSource> device_batches(BatchRing& ring, at::Device device) {
  return std::make_unique<DeviceBatches>(ring, device);
}

}  // namespace yoke::data
