#include "yoke/models/resnet.hpp"

#include <algorithm>

#include <torch/nn/init.h>

#include "head.hpp"
#include "yoke/core/error.hpp"
#include "yoke/nn/cast_together.hpp"
#include "yoke/nn/pooling.hpp"
#include "yoke/nn/stem.hpp"

namespace yoke::models {
namespace {

using torch::nn::Conv2d;
using torch::nn::Sequential;

nn::BatchNorm2d norm(std::int64_t channels) { return nn::BatchNorm2d(channels); }

nn::BatchNorm2d norm_relu(std::int64_t channels) {
  return nn::BatchNorm2d(
      nn::BatchNorm2dOptions{.num_features = channels, .activation = nn::Activation::relu});
}

/// The end of a block: relu(norm(x) + shortcut).
nn::BatchNorm2d norm_add_relu(std::int64_t channels) {
  return nn::BatchNorm2d(nn::BatchNorm2dOptions{
      .num_features = channels, .activation = nn::Activation::relu, .residual = true});
}

Conv2d conv1x1(std::int64_t in, std::int64_t out, std::int64_t stride = 1) {
  return Conv2d(torch::nn::Conv2dOptions(in, out, 1).stride(stride).bias(false));
}

Conv2d conv3x3(std::int64_t in, std::int64_t out, std::int64_t stride = 1) {
  return Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

// Null where input and output of the block have one shape. Made before the block's own layers and
// registered after them, as torchvision does, so that both draw the same random numbers.
Sequential shortcut(const BlockOptions& options, std::int64_t out_channels) {
  if (options.stride == 1 && options.in_channels == out_channels) return nullptr;
  return Sequential(conv1x1(options.in_channels, out_channels, options.stride), norm(out_channels));
}

// Null where the block's shortcut is its input.
torch::nn::Conv2dImpl* convolution_of(Sequential& downsample) {
  return downsample.is_empty() ? nullptr : downsample->ptr(0)->as<torch::nn::Conv2dImpl>();
}

Forked end_of_block(nn::BatchNorm2d& last, const at::Tensor& x, const at::Tensor& shortcut,
                    Sequential& downsample) {
  at::Tensor added = shortcut;
  if (auto* convolution = convolution_of(downsample)) {
    added = downsample->ptr(1)->as<nn::BatchNorm2dImpl>()->forward(
        nn::convolve(*convolution, shortcut));
  }
  const auto [main, again] = last->forward_twice(x, added);
  return {main, again};
}

void add_weights(BasicBlockImpl& block, std::vector<at::Tensor>& to) {
  to.insert(to.end(), {block.conv1->weight, block.conv2->weight});
}

void add_weights(BottleneckImpl& block, std::vector<at::Tensor>& to) {
  to.insert(to.end(), {block.conv1->weight, block.conv2->weight, block.conv3->weight});
}

// The weights of a stage are cast together.
template <class BlockImpl>
Forked through(Sequential& stage, Forked x) {
  std::vector<BlockImpl*> blocks;
  std::vector<at::Tensor> weights;
  for (const auto& child : stage->children()) {
    blocks.push_back(child->as<BlockImpl>());
    add_weights(*blocks.back(), weights);
    if (auto* shortcut = convolution_of(blocks.back()->downsample))
      weights.push_back(shortcut->weight);
  }
  const nn::CastTogether casts(weights);
  for (BlockImpl* block : blocks) x = block->forward_forked(x);
  return x;
}

template <class BlockHolder>
Sequential stage(std::int64_t in_channels, std::int64_t width, std::int64_t depth,
                 std::int64_t stride) {
  Sequential blocks;
  blocks->push_back(BlockHolder(BlockOptions{in_channels, width, stride}));
  const std::int64_t out_channels = width * BlockHolder::Impl::kExpansion;
  for (std::int64_t i = 1; i < depth; ++i) {
    blocks->push_back(BlockHolder(BlockOptions{out_channels, width, 1}));
  }
  return blocks;
}

void initialise(torch::nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (const auto* conv = module->as<torch::nn::Conv2dImpl>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    } else if (const auto* norm = module->as<nn::BatchNorm2dImpl>()) {
      torch::nn::init::ones_(norm->weight);
      torch::nn::init::zeros_(norm->bias);
    }
  }
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(const BlockOptions& chosen) : options(chosen) { reset(); }

void BasicBlockImpl::reset() {
  const Sequential made = shortcut(options, options.width);
  conv1 = register_module("conv1", conv3x3(options.in_channels, options.width, options.stride));
  bn1 = register_module("bn1", norm_relu(options.width));
  conv2 = register_module("conv2", conv3x3(options.width, options.width));
  bn2 = register_module("bn2", norm_add_relu(options.width));
  downsample = made.is_empty() ? made : register_module("downsample", made);
}

Forked BasicBlockImpl::forward_forked(const Forked& x) {
  const at::Tensor out = bn1->forward(nn::convolve(*conv1, x.main));
  return end_of_block(bn2, nn::convolve(*conv2, out), x.shortcut, downsample);
}

BottleneckImpl::BottleneckImpl(const BlockOptions& chosen) : options(chosen) { reset(); }

void BottleneckImpl::reset() {
  const std::int64_t out_channels = options.width * kExpansion;
  const Sequential made = shortcut(options, out_channels);
  conv1 = register_module("conv1", conv1x1(options.in_channels, options.width));
  bn1 = register_module("bn1", norm_relu(options.width));
  conv2 = register_module("conv2", conv3x3(options.width, options.width, options.stride));
  bn2 = register_module("bn2", norm_relu(options.width));
  conv3 = register_module("conv3", conv1x1(options.width, out_channels));
  bn3 = register_module("bn3", norm_add_relu(out_channels));
  downsample = made.is_empty() ? made : register_module("downsample", made);
}

Forked BottleneckImpl::forward_forked(const Forked& x) {
  at::Tensor out = bn1->forward(nn::convolve(*conv1, x.main));
  out = bn2->forward(nn::convolve(*conv2, out));
  return end_of_block(bn3, nn::convolve(*conv3, out), x.shortcut, downsample);
}

ResNetImpl::ResNetImpl(const ResNetOptions& chosen)
    : CloneableClassifier("ResNet"), options(chosen) {
  require_positive("a ResNet", options.num_classes, options.in_channels);
  if (*std::ranges::min_element(options.depths) < 1) {
    throw Error(Code::invalid_argument, "build a ResNet with a layer of no blocks",
                "give depths of 1 or more");
  }
  const bool basic = options.block == Block::basic;
  const auto make_stage = basic ? stage<BasicBlock> : stage<Bottleneck>;
  const std::int64_t expansion = basic ? BasicBlockImpl::kExpansion : BottleneckImpl::kExpansion;
  conv1 = register_module(
      "conv1",
      Conv2d(
          torch::nn::Conv2dOptions(options.in_channels, 64, 7).stride(2).padding(3).bias(false)));
  bn1 = register_module("bn1", norm_relu(64));
  layer1 = register_module("layer1", make_stage(64, 64, options.depths[0], 1));
  layer2 = register_module("layer2", make_stage(64 * expansion, 128, options.depths[1], 2));
  layer3 = register_module("layer3", make_stage(128 * expansion, 256, options.depths[2], 2));
  layer4 = register_module("layer4", make_stage(256 * expansion, 512, options.depths[3], 2));
  fc = register_module("fc", torch::nn::Linear(512 * expansion, options.num_classes));
  initialise(*this);
}

at::Tensor ResNetImpl::forward(const at::Tensor& images) {
  at::Tensor x = bn1->forward(nn::stem_convolution(images, conv1->weight));
  x = nn::max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
  Forked forked{x, x};
  const auto run =
      options.block == Block::basic ? through<BasicBlockImpl> : through<BottleneckImpl>;
  for (Sequential* stage : {&layer1, &layer2, &layer3, &layer4}) forked = run(*stage, forked);
  x = forked.main;
  return fc->forward(nn::global_avg_pool(x));
}

void ResNetImpl::replace_head(std::int64_t num_classes) {
  fc = replace_module("fc", head_like(*fc, num_classes));
  options.num_classes = num_classes;
}

ResNet resnet18(std::int64_t num_classes, std::int64_t in_channels) {
  return ResNet(ResNetOptions{Block::basic, {2, 2, 2, 2}, num_classes, in_channels});
}

ResNet resnet34(std::int64_t num_classes, std::int64_t in_channels) {
  return ResNet(ResNetOptions{Block::basic, {3, 4, 6, 3}, num_classes, in_channels});
}

ResNet resnet50(std::int64_t num_classes, std::int64_t in_channels) {
  return ResNet(ResNetOptions{Block::bottleneck, {3, 4, 6, 3}, num_classes, in_channels});
}

ResNet resnet101(std::int64_t num_classes, std::int64_t in_channels) {
  return ResNet(ResNetOptions{Block::bottleneck, {3, 4, 23, 3}, num_classes, in_channels});
}

}  // namespace yoke::models
