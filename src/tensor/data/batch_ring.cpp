#include "batch_ring.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "sample_text.hpp"
#include "serial_torch.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/named_dataset.hpp"

namespace yoke::data {
namespace {

std::vector<std::int64_t> with_rows(std::int64_t rows, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> all{rows};
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

constexpr std::int64_t kAlignment = 256;  // of a tensor in the slab, as torch's own allocators have

std::int64_t bytes_of(std::int64_t rows, const std::vector<std::int64_t>& sizes,
                      at::ScalarType dtype) {
  std::int64_t bytes = rows * static_cast<std::int64_t>(c10::elementSize(dtype));
  for (const std::int64_t size : sizes) bytes *= size;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t bytes_of_slot(const BatchRingOptions& options, const SampleLayout& layout) {
  return bytes_of(options.batch_size, layout.input_sizes, layout.input_dtype) +
         bytes_of(options.batch_size, layout.target_sizes, layout.target_dtype);
}

// One slot for the reader and one to fill is the least that moves.
BatchRingOptions within_budget(BatchRingOptions options, const SampleLayout& layout) {
  if (options.memory_budget == 0) return options;
  const std::int64_t slot = bytes_of_slot(options, layout);
  if (options.memory_budget < 2 * slot) {
    throw Error(Code::invalid_argument,
                core::text("make a loader: two batches of ", slot, " bytes exceed the budget of ",
                           options.memory_budget, " bytes"),
                "raise memory_budget, or make batches smaller");
  }
  options.slots = std::min(options.slots, options.memory_budget / slot);
  return options;
}

at::MemoryFormat format_of(const SampleLayout& layout) {
  return layout.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

std::int64_t rows_per_piece(const BatchRingOptions& options, const Dataset& dataset) {
  if (dataset.named() != nullptr) return options.batch_size;
  return std::clamp<std::int64_t>(dataset.rows_at_once(), 1, options.batch_size);
}

bool is_shared(const Slot& slot) {
  return slot.input.storage().use_count() > 1 || slot.target.storage().use_count() > 1;
}

at::Tensor field_or_none(const NamedTensors& fields, std::string_view name) {
  for (const auto& [known, tensor] : fields) {
    if (known == name) return tensor;
  }
  return {};
}

}  // namespace

BatchRing::BatchRing(std::shared_ptr<const Dataset> dataset, const BatchRingOptions& options)
    : dataset_(std::move(dataset)),
      layout_(dataset_->layout()),
      options_(within_budget(options, layout_)),
      slot_bytes_(bytes_of_slot(options_, layout_)),
      num_classes_(dataset_->num_classes()),
      worker_count_(std::max(1U, options.workers)),
      ring_({.slots = static_cast<std::size_t>(options_.slots),
             .workers = options.workers,
             .rows_per_piece = rows_per_piece(options, *dataset_),
             .timeout = options.timeout},
            {.rows = [this](std::int64_t ticket) { return schedule_->step(ticket).rows(); },
             .fill = [this](const feed::Piece& piece) { fill(piece); }}) {
  // One piece of memory: pinning it is one call, and an allocator that rounds each size up to a
  // power of two rounds once.
  const c10::InferenceMode plain(false);
  const at::Tensor slab = at::empty({options_.slots * slot_bytes_},
                                    at::TensorOptions(at::kByte).pinned_memory(options_.pinned));
  slots_.reserve(static_cast<std::size_t>(options_.slots));
  for (std::int64_t i = 0; i < options_.slots; ++i) slots_.push_back(slot_in(slab, i));
}

// A tensor of its own storage on a part of the slab, so that its holders can be counted.
Slot BatchRing::slot_in(const at::Tensor& slab, std::int64_t number) const {
  auto* place = slab.mutable_data_ptr<std::uint8_t>() + number * slot_bytes_;
  const auto tensor = [&](const std::vector<std::int64_t>& sizes, at::ScalarType dtype,
                          at::MemoryFormat format) {
    const std::vector<std::int64_t> all = with_rows(options_.batch_size, sizes);
    const std::vector<std::int64_t> strides =
        at::empty(all, at::TensorOptions(at::kMeta).dtype(dtype).memory_format(format))
            .strides()
            .vec();
    void* const data = std::exchange(place, place + bytes_of(options_.batch_size, sizes, dtype));
    return at::from_blob(data, all, strides, [slab](void*) {}, at::TensorOptions(dtype));
  };
  const auto rows = static_cast<std::size_t>(options_.batch_size);
  at::Tensor input = tensor(layout_.input_sizes, layout_.input_dtype, format_of(layout_));
  at::Tensor target =
      tensor(layout_.target_sizes, layout_.target_dtype, at::MemoryFormat::Contiguous);
  return {std::move(input), std::move(target), std::vector<std::int64_t>(rows),
          std::vector<std::uint8_t>(rows)};
}

Slot BatchRing::make_slot() const {
  // Made while somebody evaluates in inference mode, the memory would be of no use for training.
  const c10::InferenceMode plain(false);
  const auto tensor = [&](const std::vector<std::int64_t>& sizes, at::ScalarType dtype,
                          at::MemoryFormat format) {
    return at::empty(with_rows(options_.batch_size, sizes),
                     at::TensorOptions(dtype).pinned_memory(options_.pinned).memory_format(format));
  };
  const auto rows = static_cast<std::size_t>(options_.batch_size);
  return {tensor(layout_.input_sizes, layout_.input_dtype, format_of(layout_)),
          tensor(layout_.target_sizes, layout_.target_dtype, at::MemoryFormat::Contiguous),
          std::vector<std::int64_t>(rows), std::vector<std::uint8_t>(rows)};
}

void BatchRing::start(std::unique_ptr<const Schedule> schedule) {
  ring_.rest();
  schedule_ = std::move(schedule);
  for (Slot& slot : slots_) {
    if (is_shared(slot)) slot = make_slot();
  }
  oldest_held_ = 0;
  ring_.seek(0);
  window_ = ring_.report();
  window_start_ = std::chrono::steady_clock::now();
}

Batch BatchRing::next() {
  const auto ready = ring_.next();  // the ring has no end
  if (options_.adapt_workers) adapt_workers();
  const Schedule::Step step = schedule_->step(ready->ticket);
  Slot& slot = slots_[ready->slot];
  Batch batch{.input = slot.input.narrow(0, 0, step.rows()),
              .target = slot.target.narrow(0, 0, step.rows()),
              .fields = std::exchange(slot.fields, {}),
              .indices = {slot.indices.begin(), slot.indices.begin() + step.rows()},
              .epoch = step.epoch(),
              .index = step.index(),
              .global_rows = step.global_rows()};
  if (dataset_->named() != nullptr) {
    batch.input = field_or_none(batch.fields, "input");
    batch.target = field_or_none(batch.fields, "target");
  } else {
    leave_out_bad(slot, batch);
  }
  return batch;
}

void BatchRing::adapt_workers() {
  constexpr std::int64_t kWindow = 16;  // batches
  const feed::SlotRing::Report now = ring_.report();
  const std::int64_t batches = now.handed_out - window_.handed_out;
  if (batches < kWindow) return;
  const auto time = std::chrono::steady_clock::now();
  // The wait for a run's first batches tells nothing about its speed.
  if (window_.handed_out > 0) {
    const unsigned before = worker_count_.value();
    const unsigned count =
        worker_count_.update({.elapsed = time - window_start_,
                              .waited = now.waited - window_.waited,
                              .always_full = now.found_full - window_.found_full == batches});
    if (count != before) ring_.set_active(count);
  }
  window_ = now;
  window_start_ = time;
}

void BatchRing::leave_out_bad(const Slot& slot, Batch& batch) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < batch.rows(); ++row) {
    if (slot.good[static_cast<std::size_t>(row)] != 0) rows.push_back(row);
  }
  const std::int64_t bad = batch.rows() - static_cast<std::int64_t>(rows.size());
  if (bad == 0) return;
  left_out_ += bad;
  const at::Tensor kept = at::tensor(rows, at::kLong);
  batch.input = batch.input.index_select(0, kept).contiguous(batch.input.suggest_memory_format());
  batch.target = batch.target.index_select(0, kept);
  for (std::size_t i = 0; i < rows.size(); ++i)
    batch.indices[i] = batch.indices[static_cast<std::size_t>(rows[i])];
  batch.indices.resize(rows.size());
}

void BatchRing::release() {
  Slot& slot = slots_[oldest_held_];
  if (is_shared(slot)) slot = make_slot();
  // Whoever gave up the last view has finished with it before a worker writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  oldest_held_ = (oldest_held_ + 1) % slots_.size();
  ring_.release();
}

void BatchRing::fill(const feed::Piece& piece) {
  const SerialTorch serial;
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
  if (const NamedDataset* named = dataset_->named()) {
    slot.fields = named->batch_of(request);
    return;
  }
  const at::Tensor target = slot.target.narrow(0, piece.first, count);
  const std::span good = std::span(slot.good).subspan(static_cast<std::size_t>(piece.first),
                                                      static_cast<std::size_t>(count));
  std::ranges::fill(good, std::uint8_t{1});
  dataset_->fill(request, {slot.input.narrow(0, piece.first, count), target, good});
  check_classes(request, target, good);
}

void BatchRing::check_classes(const Request& request, const at::Tensor& target,
                              std::span<const std::uint8_t> good) const {
  const bool are_classes = num_classes_ > 0 && layout_.target_dtype == at::kLong;
  if (!are_classes || target.numel() != static_cast<std::int64_t>(request.indices.size())) return;
  const std::span labels(target.const_data_ptr<std::int64_t>(), request.indices.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (good[row] == 0 || (labels[row] >= 0 && labels[row] < num_classes_)) continue;
    throw Error(Code::invalid_argument,
                core::text(loading(*dataset_, request.indices[row], request.worker),
                           ": its label is ", labels[row], ", but there are ", num_classes_,
                           " classes (0 to ", num_classes_ - 1, ")"),
                "give the number of classes that the data have, or mend the label");
  }
}

}  // namespace yoke::data
