#pragma once

#include <cstdint>
#include <utility>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/container/any_value.h>
#include <torch/nn/pimpl.h>

namespace yoke::comm {
class Group;
}

namespace yoke::nn {

enum class Activation { none, relu };

struct BatchNorm2dOptions {
  std::int64_t num_features = 0;
  double eps = 1e-5;
  double momentum = 0.1;
  Activation activation = Activation::none;  ///< what comes after the norm, and after the add
  bool residual = false;                     ///< forward takes a second tensor and adds it
};

/// Batch normalisation together with the add and the ReLU that follow it:
/// relu(batch_norm(x) + residual).
///
///   nn::BatchNorm2d norm({.num_features = 64, .activation = nn::Activation::relu});
///   at::Tensor y = norm(conv(x));
///   nn::BatchNorm2d last({.num_features = 256, .activation = nn::Activation::relu,
///                         .residual = true});
///   at::Tensor z = last(conv(y), shortcut);
///
/// Parameters and buffers have the names, shapes and initial values of torch's BatchNorm2d, in its
/// order, so that state dicts fit both ways.
/// Training on a card from sm_80 with dense channels-last input in float32, float16 or bfloat16
/// runs fused kernels (room kernels): their gradients cannot be differentiated again. Everything
/// else, and evaluation, runs torch's operations. Shapes: [rows, num_features, h, w] -> the same;
/// the residual likewise. Errors: invalid_argument for a residual where none was announced, or none
/// where one was; torch's for a wrong shape or one value a channel in training.
class BatchNorm2dImpl : public torch::nn::Cloneable<BatchNorm2dImpl> {
 public:
  explicit BatchNorm2dImpl(const BatchNorm2dOptions& options);
  explicit BatchNorm2dImpl(std::int64_t num_features)
      : BatchNorm2dImpl(BatchNorm2dOptions{.num_features = num_features}) {}
  void reset() override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& residual = {});

  /// forward()'s result as two tensors of the same memory, for two consumers: their gradients then
  /// come separately and the kernels add them on the way. In a residual network: the next block's
  /// first convolution and its shortcut. Neither may be changed in place.
  std::pair<at::Tensor, at::Tensor> forward_twice(const at::Tensor& x,
                                                  const at::Tensor& residual = {});

  BatchNorm2dOptions options;
  comm::Group* group = nullptr;  ///< null: this rank's own statistics; see synchronise_norms()
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
  at::Tensor num_batches_tracked;

 private:
  void require_announced(const at::Tensor& residual) const;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(BatchNorm2d);

}  // namespace yoke::nn
