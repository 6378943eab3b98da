#include "batch_ring.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "sample_text.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {
namespace {

std::vector<std::int64_t> with_rows(std::int64_t rows, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> all{rows};
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

std::int64_t rows_per_piece(const BatchRingOptions& options, const Dataset& dataset) {
  return std::clamp<std::int64_t>(dataset.rows_at_once(), 1, options.batch_size);
}

bool is_shared(const at::Tensor& tensor) { return tensor.storage().use_count() > 1; }

}  // namespace

BatchRing::BatchRing(std::shared_ptr<const Dataset> dataset, const BatchRingOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      layout_(dataset_->layout()),
      num_classes_(dataset_->num_classes()),
      ring_({.slots = static_cast<std::size_t>(options.slots),
             .workers = options.workers,
             .rows_per_piece = rows_per_piece(options, *dataset_),
             .timeout = options.timeout},
            {.rows = [this](std::int64_t ticket) { return schedule_->step(ticket).rows(); },
             .fill = [this](const feed::Piece& piece) { fill(piece); }}) {
  slots_.reserve(static_cast<std::size_t>(options.slots));
  for (std::int64_t i = 0; i < options.slots; ++i) slots_.push_back(make_slot());
}

Slot BatchRing::make_slot() const {
  // Made while somebody evaluates in inference mode, the memory would be of no use for training.
  const c10::InferenceMode plain(false);
  const auto tensor = [&](const std::vector<std::int64_t>& sizes, at::ScalarType dtype) {
    return at::empty(with_rows(options_.batch_size, sizes),
                     at::TensorOptions(dtype).pinned_memory(options_.pinned));
  };
  return {tensor(layout_.input_sizes, layout_.input_dtype),
          tensor(layout_.target_sizes, layout_.target_dtype),
          std::vector<std::int64_t>(static_cast<std::size_t>(options_.batch_size))};
}

void BatchRing::start(std::unique_ptr<const Schedule> schedule) {
  ring_.rest();
  schedule_ = std::move(schedule);
  for (Slot& slot : slots_) {
    if (is_shared(slot.input) || is_shared(slot.target)) slot = make_slot();
  }
  oldest_held_ = 0;
  ring_.seek(0);
}

Batch BatchRing::next() {
  const auto ready = ring_.next();  // the ring has no end
  const Schedule::Step step = schedule_->step(ready->ticket);
  const Slot& slot = slots_[ready->slot];
  return {.input = slot.input.narrow(0, 0, step.rows()),
          .target = slot.target.narrow(0, 0, step.rows()),
          .indices = {slot.indices.begin(), slot.indices.begin() + step.rows()},
          .epoch = step.epoch(),
          .index = step.index(),
          .global_rows = step.global_rows()};
}

void BatchRing::release() {
  Slot& slot = slots_[oldest_held_];
  if (is_shared(slot.input) || is_shared(slot.target)) slot = make_slot();
  // Whoever gave up the last view has finished with it before a worker writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  oldest_held_ = (oldest_held_ + 1) % slots_.size();
  ring_.release();
}

void BatchRing::fill(const feed::Piece& piece) {
  const c10::InferenceMode plain(false);
  const c10::NoGradGuard no_grad;
  const Schedule::Step step = schedule_->step(piece.ticket);
  const auto order = schedule_->order(step.epoch());
  Slot& slot = slots_[piece.slot];
  for (std::int64_t row = piece.first; row < piece.last; ++row) {
    slot.indices[static_cast<std::size_t>(row)] = (*order)[step.position(row)];
  }
  const std::int64_t count = piece.last - piece.first;
  const Request request{.indices = std::span(slot.indices)
                                       .subspan(static_cast<std::size_t>(piece.first),
                                                static_cast<std::size_t>(count)),
                        .seed = schedule_->seed(),
                        .epoch = step.epoch(),
                        .worker = piece.worker};
  const at::Tensor target = slot.target.narrow(0, piece.first, count);
  dataset_->fill(request, {slot.input.narrow(0, piece.first, count), target});
  check_classes(request, target);
}

void BatchRing::check_classes(const Request& request, const at::Tensor& target) const {
  const bool are_classes = num_classes_ > 0 && layout_.target_dtype == at::kLong;
  if (!are_classes || target.numel() != static_cast<std::int64_t>(request.indices.size())) return;
  const std::span labels(target.const_data_ptr<std::int64_t>(), request.indices.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] >= 0 && labels[row] < num_classes_) continue;
    throw Error(Code::invalid_argument,
                core::text(loading(*dataset_, request.indices[row], request.worker),
                           ": its label is ", labels[row], ", but there are ", num_classes_,
                           " classes (0 to ", num_classes_ - 1, ")"),
                "give the number of classes that the data have, or mend the label");
  }
}

}  // namespace yoke::data
