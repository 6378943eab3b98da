#include <gtest/gtest.h>

#include "yoke/models/layout.hpp"
#include "yoke/models/resnet.hpp"

namespace yoke::models {
namespace {

TEST(ModelsGpu, AChannelsLastCloneOnTheCardGivesTheScoresOfTheCpu) {
  ResNet model = resnet50(10);
  model->eval();
  const at::Tensor images = torch::randn({4, 3, 64, 64});

  const auto clone = std::dynamic_pointer_cast<ResNetImpl>(model->clone(at::Device(at::kCUDA, 0)));
  ASSERT_TRUE(clone);
  to_channels_last(*clone);
  const torch::NoGradGuard no_grad;
  const at::Tensor expected = model->forward(images);
  const at::Tensor scores =
      clone->forward(images.to(at::kCUDA).contiguous(at::MemoryFormat::ChannelsLast));
  // 1e-2: convolutions on the card may use TF32, of 10 bits, through 50 layers
  EXPECT_LT((scores.cpu() - expected).norm().item<double>(), 1e-2 * expected.norm().item<double>());
  EXPECT_TRUE(clone->conv1->weight.is_cuda());
  EXPECT_FALSE(clone->is_training());
  EXPECT_TRUE(model->conv1->weight.is_cpu());
}

}  // namespace
}  // namespace yoke::models
