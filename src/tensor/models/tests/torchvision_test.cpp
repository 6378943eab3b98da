// The ResNets beside torchvision's: names, first weights, results.
#include <gtest/gtest.h>

#include "python_twin.hpp"
#include "yoke/models/registry.hpp"

namespace yoke::models {
namespace {

constexpr InputOptions kInput{.num_classes = 10, .in_channels = 3, .image_size = 64};

std::vector<std::string> lines(const torch::OrderedDict<std::string, at::Tensor>& named) {
  std::vector<std::string> all;
  for (const auto& item : named) {
    std::string line = item.key() + " ";
    for (std::int64_t d = 0; d < item.value().dim(); ++d) {
      line += (d == 0 ? "" : ",") + std::to_string(item.value().size(d));
    }
    all.push_back(line);
  }
  return all;
}

TEST(Torchvision, HasTheSameParametersAndBuffersInTheSameOrder) {
  twin::Twin python;

  python.run("names resnet18 resnet34 resnet50 resnet101");

  for (const std::string name : {"resnet18", "resnet34", "resnet50", "resnet101"}) {
    const auto model = make(name, kInput);
    EXPECT_EQ(lines(model->named_parameters()), python.lines("parameters." + name));
    EXPECT_EQ(lines(model->named_buffers()), python.lines("buffers." + name));
  }
}

class TorchvisionNumbers : public testing::TestWithParam<std::string> {};

// 1e-5 of the norm: both sides run the same kernels, on as many threads as each finds. The first
// weights are equal bits, as both draw the same random numbers in the same order.
TEST_P(TorchvisionNumbers, FirstWeightsForwardGradientsAndStatisticsAreEqual) {
  constexpr double kTolerance = 1e-5;
  twin::Twin python;
  torch::manual_seed(5);
  const auto model = make(GetParam(), kInput);

  python.run("run " + GetParam());

  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().equal(python["first." + item.key()])) << item.key();
  }
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) item.value().copy_(python["state." + item.key()]);
    for (auto& item : model->named_buffers()) item.value().copy_(python["state." + item.key()]);
  }

  for (const std::string mode : {"eval", "train"}) {
    model->train(mode == "train");
    model->zero_grad();
    const at::Tensor y = model->forward(python["x"]);
    at::cross_entropy_loss(y, torch::arange(4)).backward();

    EXPECT_LT(twin::relative_error(y.detach(), python[mode + ".y"]), kTolerance) << mode;
    for (const auto& item : model->named_parameters()) {
      const at::Tensor& expected = python[mode + ".grad." + item.key()];
      EXPECT_LT(twin::relative_error(item.value().grad(), expected), kTolerance)
          << mode << ' ' << item.key();
    }
  }
  for (const auto& item : model->named_buffers()) {
    EXPECT_LT(twin::relative_error(item.value(), python["after." + item.key()]), kTolerance)
        << item.key();
  }
}

INSTANTIATE_TEST_SUITE_P(BothBlocks, TorchvisionNumbers, testing::Values("resnet18", "resnet50"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace yoke::models
