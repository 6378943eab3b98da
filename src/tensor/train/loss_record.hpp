#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::data {
struct Batch;
}

namespace yoke::train {

// Losses of this rank's batches, kept on their device until settle(), so that the host need not
// wait at every step.
class LossRecord {
 public:
  struct Sum {
    double loss = 0;  // times rows
    double rows = 0;
    Sum& operator+=(const Sum& other);
  };

  explicit LossRecord(int rank) : rank_(rank) {}

  // `loss`: mean over the batch's rows, in optimizer step `step` (from 1). On the CPU it is settled
  // at once.
  void add(const at::Tensor& loss, const data::Batch& batch, std::int64_t step);

  // Reads what is pending. Errors: corrupt_data for the first loss that is not finite.
  void settle();

  // What is gathered so far, to be put back in another process. Requires: settled.
  struct Sums {
    Sum interval;
    Sum epoch;
  };
  [[nodiscard]] Sums sums() const noexcept { return {interval_, epoch_}; }
  void restore(const Sums& sums) noexcept {
    interval_ = sums.interval;
    epoch_ = sums.epoch;
  }

  // Since the last call. Requires: settled.
  [[nodiscard]] Sum take_interval();
  [[nodiscard]] Sum take_epoch();

 private:
  struct Pending {
    at::Tensor loss;
    std::vector<std::int64_t> samples;
    std::int64_t epoch;
    std::int64_t step;
  };

  [[noreturn]] void refuse(double loss, const Pending& where) const;
  void count(double loss, const Pending& entry);

  int rank_;
  std::vector<Pending> pending_;
  Sum interval_;
  Sum epoch_;
};

}  // namespace yoke::train
