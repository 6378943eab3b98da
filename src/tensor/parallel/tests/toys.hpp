#pragma once

#include <memory>
#include <string>

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace yoke::parallel::toys {

/// The module of the case book: two bias-free 1x1 layers of weight 1, of which forward uses what
/// `uses` says.
struct Toy2 : torch::nn::Module {
  explicit Toy2(std::string what = "ab") : uses(std::move(what)) {
    a = register_module("a", torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
    b = register_module("b", torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
    const at::NoGradGuard no_grad;
    a->weight.fill_(1.0);
    b->weight.fill_(1.0);
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = at::zeros_like(x);
    if (uses.find('a') != std::string::npos) y = y + a->forward(x);
    if (uses.find('b') != std::string::npos) y = y + b->forward(x);
    return y;
  }
  std::string uses;
  torch::nn::Linear a = nullptr;
  torch::nn::Linear b = nullptr;
};

inline at::Tensor row(double value) { return at::full({1, 1}, value); }

inline double grad_of(const torch::nn::Linear& layer) {
  return layer->weight.grad().item<double>();
}

}  // namespace yoke::parallel::toys
