#include "yoke/models/image_classifier.hpp"

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/models/layout.hpp"
#include "yoke/models/mlp.hpp"
#include "yoke/models/registry.hpp"
#include "yoke/models/resnet.hpp"
#include "yoke/models/small_cnn.hpp"

namespace yoke::models {
namespace {

const std::vector<std::string> kEachKind{"mlp", "small-cnn", "resnet18"};

at::Tensor images(std::int64_t rows, std::int64_t channels = 1, std::int64_t side = 28) {
  return torch::randn({rows, channels, side, side});
}

// A user's module with a classifier inside, cloned by torch's own rules.
struct WrapperImpl : torch::nn::Cloneable<WrapperImpl> {
  WrapperImpl() { reset(); }
  void reset() override { inner = register_module("inner", small_cnn()); }
  SmallCnn inner{nullptr};
};

TEST(Registry, EveryNameGivesOneScorePerClass) {
  const torch::NoGradGuard no_grad;
  for (const std::string& name : names()) {
    const auto model = make(name, {.num_classes = 7, .in_channels = 1, .image_size = 28});

    const at::Tensor scores = model->forward(images(2));

    EXPECT_EQ(scores.sizes(), (std::vector<std::int64_t>{2, 7})) << name;
  }
}

TEST(Models, EveryParameterGetsAGradient) {
  for (const std::string& name : kEachKind) {
    const auto model = make(name, {});

    model->forward(images(2)).square().sum().backward();

    for (const auto& parameter : model->named_parameters()) {
      EXPECT_TRUE(parameter.value().grad().defined()) << name << ": " << parameter.key();
    }
  }
}

TEST(Registry, UnknownNameSuggestsTheNearest) {
  try {
    (void)make("resnet-50", {});
    FAIL() << "made a resnet-50";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_EQ(error.hint(), "did you mean resnet50?");
  }
}

TEST(Registry, NoClassesAreRefused) {
  for (const std::string& name : names()) {
    EXPECT_THROW((void)make(name, {.num_classes = 0}), Error) << name;
    EXPECT_THROW((void)make(name, {.in_channels = 0}), Error) << name;
  }
}

TEST(Models, BatchOfNoRowsGivesDefinedZeroGradients) {
  for (const std::string& name : kEachKind) {
    const auto model = make(name, {});

    model->forward(images(0)).sum().backward();

    for (const auto& parameter : model->named_parameters()) {
      const at::Tensor gradient = parameter.value().grad();
      ASSERT_TRUE(gradient.defined()) << name << ": " << parameter.key();
      EXPECT_EQ(gradient.count_nonzero().item<std::int64_t>(), 0)
          << name << ": " << parameter.key();
    }
  }
}

TEST(Mlp, BenchModelHas5824522Parameters) {
  const Mlp model = mlp({784, 2048, 2048, 10});

  std::int64_t count = 0;
  for (const at::Tensor& parameter : model->parameters()) count += parameter.numel();

  EXPECT_EQ(count, 784 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 10 + 10);
}

TEST(Mlp, OneWidthIsRefusedWithTheWidthsGiven) {
  try {
    (void)mlp({784});
    FAIL() << "built an MLP of one width";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "build an MLP of widths {784}");
  }
}

TEST(SmallCnn, OtherImageSizesArePooledToTheSameHead) {
  SmallCnn model = small_cnn({.num_classes = 3, .in_channels = 3});

  for (const std::int64_t side : {4, 15, 28, 64}) {
    EXPECT_EQ(model->forward(images(2, 3, side)).sizes(), (std::vector<std::int64_t>{2, 3}))
        << side;
  }
}

TEST(Clone, HasEqualValuesOfItsOwnAndKeepsFrozenAndEvaluationState) {
  ResNet model = resnet18(10);
  model->conv1->weight.set_requires_grad(false);
  model->layer1->eval();
  model->to(torch::kDouble);
  const at::Tensor input = images(2, 3, 32).to(torch::kDouble);

  const auto copy = std::dynamic_pointer_cast<ResNetImpl>(model->clone());

  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->forward(input).equal(model->forward(input)));
  EXPECT_FALSE(copy->conv1->weight.requires_grad());
  EXPECT_FALSE(copy->layer1->is_training());
  EXPECT_TRUE(copy->layer2->is_training());
  model->fc->bias.data().add_(1);
  EXPECT_FALSE(copy->fc->bias.equal(model->fc->bias));
}

TEST(Clone, DrawsNoRandomNumbers) {
  ResNet model = resnet18(10);
  torch::manual_seed(5);
  const at::Tensor expected = torch::rand(4);
  torch::manual_seed(5);

  (void)model->clone();

  EXPECT_TRUE(torch::rand(4).equal(expected));
}

TEST(Clone, WorksInsideACloneableModuleOfTheUser) {
  const auto wrapper = std::make_shared<WrapperImpl>();
  const at::Tensor input = images(2);

  const auto copy = std::dynamic_pointer_cast<WrapperImpl>(wrapper->clone());

  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->inner->forward(input).equal(wrapper->inner->forward(input)));
  EXPECT_NE(copy->inner->fc1->weight.data_ptr(), wrapper->inner->fc1->weight.data_ptr());
  EXPECT_EQ(copy->parameters()[0].data_ptr(), copy->inner->conv1->weight.data_ptr());
}

TEST(Head, ReplacedHeadHasTheNewClassesAndTheRestStays) {
  for (const std::string& name : kEachKind) {
    const auto model = make(name, {});
    const at::Tensor first = model->parameters().front().clone();
    model->to(torch::kDouble);

    replace_head(*model, 4);

    EXPECT_EQ(model->num_classes(), 4) << name;
    EXPECT_EQ(model->forward(images(2).to(torch::kDouble)).sizes(),
              (std::vector<std::int64_t>{2, 4}));
    EXPECT_TRUE(model->parameters().front().equal(first.to(torch::kDouble))) << name;
    const auto named = model->named_parameters();
    const std::vector<std::string> head = head_names(*model);
    ASSERT_EQ(head.size(), 2U) << name;
    EXPECT_EQ(named[head[0]].size(0), 4) << head[0];
    EXPECT_EQ(named[head[1]].size(0), 4) << head[1];
    EXPECT_EQ(std::dynamic_pointer_cast<ImageClassifier>(model->clone())->num_classes(), 4) << name;
  }
}

TEST(Head, TheSameNumberOfClassesKeepsTheHead) {
  SmallCnn model = small_cnn();
  const void* before = model->fc2->weight.data_ptr();

  replace_head(*model, 10);

  EXPECT_EQ(model->fc2->weight.data_ptr(), before);
}

TEST(ChannelsLast, KeepsTheTensorsAndTheResultAndGivesOneByOneWeightsPlainStrides) {
  ResNet model = resnet50(10);
  model->eval();
  const std::vector<at::Tensor> before = model->parameters();
  const at::Tensor input = images(2, 3, 64);
  const at::Tensor expected = model->forward(input);

  to_channels_last(*model);

  const at::Tensor result = model->forward(input.contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_LT((result - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>());
  const auto after = model->parameters();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].is_same(before[i])) << i;
  EXPECT_EQ(model->conv1->weight.strides(), (std::vector<std::int64_t>{147, 1, 21, 3}));
  for (const auto& parameter : model->named_parameters()) {
    const at::Tensor& value = parameter.value();
    if (value.dim() != 4) continue;
    EXPECT_TRUE(value.is_contiguous(at::MemoryFormat::ChannelsLast)) << parameter.key();
    EXPECT_EQ(value.stride(3), value.size(2) == 1 ? 1 : value.size(1)) << parameter.key();
  }
}

}  // namespace
}  // namespace yoke::models
