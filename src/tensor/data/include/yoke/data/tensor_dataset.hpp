#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "yoke/data/dataset.hpp"

namespace yoke::data {

/// Samples that lie in two tensors: sample i is row i of each.
///
///   TensorDataset points(at::randn({1000, 2}), at::randint(3, {1000}));
///
/// Shapes: input and target [size, ...] of any dtype; from a card they are copied to the host.
/// num_classes 0: one more than the largest target where targets are one int64 each, else none.
/// Borrows the tensors' memory where they are contiguous and on the host: do not change them while
/// a loader runs. Threads: any. Errors: invalid_argument for different numbers of rows, with both.
class TensorDataset final : public Dataset {
 public:
  TensorDataset(const at::Tensor& input, const at::Tensor& target, std::int64_t num_classes = 0);

  [[nodiscard]] std::int64_t size() const override { return input_.size(0); }
  [[nodiscard]] std::int64_t num_classes() const override { return num_classes_; }
  [[nodiscard]] SampleLayout layout() const override;
  void fill(const Request& request, const Rows& rows) const override;
  [[nodiscard]] std::int64_t rows_at_once() const override { return 16; }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  at::Tensor input_;   // [size, ...] contiguous, on the host
  at::Tensor target_;  // the same
  std::int64_t num_classes_;
};

}  // namespace yoke::data
