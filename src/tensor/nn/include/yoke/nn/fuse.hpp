#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace yoke::nn {

/// What fuse() found in a model's forward.
struct FuseReport {
  std::size_t norms = 0;            ///< batch norms alone
  std::size_t norms_relu = 0;       ///< with the ReLU behind them
  std::size_t norms_add_relu = 0;   ///< with the add and the ReLU behind them
  std::size_t pools = 0;            ///< max pooling, and means over all pixels
  std::size_t convolutions = 0;     ///< whose weights are cast together
  std::vector<std::string> left{};  ///< operations of these kinds that stay as they are, and why
  std::string obstacle{};           ///< why nothing is fused; empty: something is

  [[nodiscard]] std::string text() const;  ///< one line
};

/// A user's forward with the fused layers of this room in it.
///
///   Net net;                              // plain torch::nn layers
///   auto fused = nn::fuse(net, example);  // example: a batch on the training device
///   loss = at::cross_entropy_loss(fused(x), y);
///
/// C++ members are typed, so layers cannot be swapped in the module; instead its forward is traced
/// once, batch norm, ReLU and residual add are matched in the graph, and the graph runs on the
/// module's own parameters and buffers: optimizer, state dict and wrappers see the module.
/// Training mode and each shape of input have a graph of their own, made on first use; evaluation
/// mode, and a forward that cannot be traced, run the module's forward, said once. What forward
/// decides by looking at values or sizes is as it was for that shape.
/// Tracing runs forward once, without gradients; buffers are put back after it, random states are
/// not. Threads: one at a time.
class Fused {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  Fused(std::shared_ptr<torch::nn::Module> module, Forward forward, const at::Tensor& example);
  Fused(Fused&&) noexcept;
  Fused& operator=(Fused&&) noexcept;
  ~Fused();

  at::Tensor operator()(const at::Tensor& x);

  /// Of the example's shape.
  [[nodiscard]] const FuseReport& report() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `model`: a holder or shared_ptr of a module with forward(Tensor) -> Tensor, in training mode.
template <class Model>
[[nodiscard]] Fused fuse(const Model& model, const at::Tensor& example) {
  std::shared_ptr<torch::nn::Module> module;
  if constexpr (requires { model.ptr(); }) {
    module = model.ptr();
  } else {
    module = model;
  }
  return Fused(
      std::move(module), [model](const at::Tensor& x) mutable { return model->forward(x); },
      example);
}

}  // namespace yoke::nn
