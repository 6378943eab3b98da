#include "loss_record.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <ATen/Functions.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/batch.hpp"

namespace yoke::train {
namespace {

constexpr std::size_t kSamplesNamed = 8;

std::string samples_text(const std::vector<std::int64_t>& samples) {
  std::vector<std::string> named;
  for (const std::int64_t sample : samples) {
    if (named.size() == kSamplesNamed) break;
    named.push_back(std::to_string(sample));
  }
  const std::string list = core::joined(named);
  return samples.size() <= kSamplesNamed
             ? list
             : core::text(list, " and ", samples.size() - kSamplesNamed, " more");
}

}  // namespace

LossRecord::Sum& LossRecord::Sum::operator+=(const Sum& other) {
  loss += other.loss;
  rows += other.rows;
  return *this;
}

void LossRecord::add(const at::Tensor& loss, const data::Batch& batch, std::int64_t step) {
  if (loss.numel() != 1) {
    throw Error(Code::invalid_argument,
                core::text("train: the loss has ", loss.numel(), " elements"),
                "return a scalar: the mean over the batch's rows");
  }
  Pending entry{loss.detach(), batch.indices, batch.epoch, step};
  if (loss.is_cpu()) {
    count(loss.item<double>(), entry);
  } else {
    pending_.push_back(std::move(entry));
  }
}

void LossRecord::settle() {
  if (pending_.empty()) return;
  std::vector<at::Tensor> losses;
  for (const Pending& entry : pending_) losses.push_back(entry.loss.reshape({}));
  const at::Tensor values = at::stack(losses).to(at::kCPU, at::kDouble);
  const auto* value = values.const_data_ptr<double>();
  for (const Pending& entry : std::exchange(pending_, {})) count(*value++, entry);
}

void LossRecord::count(double loss, const Pending& entry) {
  if (!std::isfinite(loss)) refuse(loss, entry);
  const auto rows = static_cast<double>(entry.samples.size());
  interval_ += {loss * rows, rows};
}

void LossRecord::refuse(double loss, const Pending& where) const {
  throw Error(Code::corrupt_data,
              core::text("rank ", rank_, ": train step ", where.step, " (epoch ", where.epoch + 1,
                         "): the loss is ", loss, " over samples ", samples_text(where.samples)),
              "lower the learning rate or clip the gradients (--lr, --clip-norm), or look at these "
              "samples");
}

LossRecord::Sum LossRecord::take_interval() {
  epoch_ += interval_;
  return std::exchange(interval_, {});
}

LossRecord::Sum LossRecord::take_epoch() {
  epoch_ += std::exchange(interval_, {});
  return std::exchange(epoch_, {});
}

}  // namespace yoke::train
