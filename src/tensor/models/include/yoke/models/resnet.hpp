#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "yoke/models/image_classifier.hpp"
#include "yoke/nn/batch_norm.hpp"

namespace yoke::models {

struct BlockOptions {
  std::int64_t in_channels = 64;
  std::int64_t width = 64;  ///< channels of the 3x3 convolutions
  std::int64_t stride = 1;  ///< of the first 3x3 convolution and of the shortcut
};

/// A block's input and output, once for its convolutions and once for the shortcut: the same
/// values, apart so that backward need not add their gradients up in a pass of its own.
struct Forked {
  at::Tensor main;
  at::Tensor shortcut;
};

/// Two 3x3 convolutions and a shortcut (ResNet-18 and -34).
/// Shapes: [rows, in_channels, h, w] -> [rows, width, h / stride, w / stride].
class BasicBlockImpl : public torch::nn::Cloneable<BasicBlockImpl> {
 public:
  static constexpr std::int64_t kExpansion = 1;
  explicit BasicBlockImpl(const BlockOptions& options = {});
  void reset() override;
  at::Tensor forward(const at::Tensor& x) { return forward_forked({x, x}).main; }
  Forked forward_forked(const Forked& x);

  BlockOptions options;
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  torch::nn::Sequential downsample{nullptr};  ///< null where the shortcut is the input itself
};
TORCH_MODULE(BasicBlock);

/// 1x1, 3x3 and 1x1 convolution and a shortcut (ResNet-50 and -101). The stride sits on the 3x3, as
/// in torchvision ("v1.5"), not on the first 1x1 as in the paper. Shapes: [rows, in_channels, h, w]
/// -> [rows, 4 * width, h / stride, w / stride].
class BottleneckImpl : public torch::nn::Cloneable<BottleneckImpl> {
 public:
  static constexpr std::int64_t kExpansion = 4;
  explicit BottleneckImpl(const BlockOptions& options = {});
  void reset() override;
  at::Tensor forward(const at::Tensor& x) { return forward_forked({x, x}).main; }
  Forked forward_forked(const Forked& x);

  BlockOptions options;
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};  ///< null where the shortcut is the input itself
};
TORCH_MODULE(Bottleneck);

enum class Block { basic, bottleneck };

struct ResNetOptions {
  Block block = Block::basic;
  std::array<std::int64_t, 4> depths{2, 2, 2, 2};  ///< blocks in layer1 to layer4
  std::int64_t num_classes = 1000;
  std::int64_t in_channels = 3;
};

/// torchvision's ResNet: the same names of parameters and buffers in the same order, the same
/// arithmetic, and under the same torch::manual_seed the same initial weights.
///
/// Shapes: [rows, in_channels, h, w] -> [rows, num_classes]; made for 224 x 224, any size works.
/// Errors: invalid_argument for a number of classes, channels or blocks below 1.
class ResNetImpl : public CloneableClassifier<ResNetImpl> {
 public:
  explicit ResNetImpl(const ResNetOptions& options = {});

  at::Tensor forward(const at::Tensor& images) override;
  [[nodiscard]] std::int64_t num_classes() const override { return options.num_classes; }
  [[nodiscard]] std::string head_name() const override { return "fc"; }
  void replace_head(std::int64_t num_classes) override;

  ResNetOptions options;
  torch::nn::Conv2d conv1{nullptr};
  nn::BatchNorm2d bn1{nullptr};
  torch::nn::Sequential layer1{nullptr}, layer2{nullptr}, layer3{nullptr}, layer4{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ResNet);

[[nodiscard]] ResNet resnet18(std::int64_t num_classes = 1000, std::int64_t in_channels = 3);
[[nodiscard]] ResNet resnet34(std::int64_t num_classes = 1000, std::int64_t in_channels = 3);
[[nodiscard]] ResNet resnet50(std::int64_t num_classes = 1000, std::int64_t in_channels = 3);
[[nodiscard]] ResNet resnet101(std::int64_t num_classes = 1000, std::int64_t in_channels = 3);

}  // namespace yoke::models
