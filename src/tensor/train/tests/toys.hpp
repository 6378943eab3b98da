#pragma once

#include <cstdint>
#include <memory>

#include <ATen/Functions.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>

#include "yoke/data/data_loader.hpp"
#include "yoke/data/tensor_dataset.hpp"

namespace yoke::train::toys {

/// A small network in float64 whose weights follow from their numbers, the same in every process
/// and thread.
class Net : public torch::nn::Cloneable<Net> {
 public:
  Net() { Net::reset(); }

  void reset() override {
    first = register_module("first", torch::nn::Linear(3, 5));
    second = register_module("second", torch::nn::Linear(5, 4));
    to(at::kDouble);
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters()) {
      const at::Tensor numbers = at::arange(parameter.numel(), at::kDouble).add(1).sin();
      parameter.copy_(numbers.reshape(parameter.sizes()));
    }
  }
  at::Tensor forward(const at::Tensor& input) {
    return second->forward(first->forward(input).tanh());
  }

  torch::nn::Linear first = nullptr;
  torch::nn::Linear second = nullptr;
};

/// y = w x, w = 0 at first. With the mean of the outputs as loss its gradient is the mean of the
/// inputs.
class Slope : public torch::nn::Cloneable<Slope> {
 public:
  Slope() { Slope::reset(); }
  void reset() override { w = register_parameter("w", at::zeros({1}, at::kDouble)); }
  at::Tensor forward(const at::Tensor& input) { return input * w; }

  at::Tensor w;
};

inline at::Tensor mean_output(const at::Tensor& output, const at::Tensor&) { return output.mean(); }

/// `size` samples [3] float64 with targets of 4 classes.
inline data::TensorDataset points(std::int64_t size) {
  const at::Tensor input = at::arange(size * 3, at::kDouble).mul(0.7).cos().reshape({size, 3});
  return {input, at::arange(size).remainder(4), 4};
}

/// Sample i is the number i, its target i % 4.
inline data::TensorDataset numbers(std::int64_t size) {
  return {at::arange(size, at::kDouble).reshape({size, 1}), at::arange(size).remainder(4), 4};
}

inline data::DataLoaderOptions batches_of(std::int64_t batch_size) {
  return {.batch_size = batch_size, .seed = 7, .num_workers = 0};
}

}  // namespace yoke::train::toys
