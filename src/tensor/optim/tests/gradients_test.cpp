// What optimizers do with gradients of every kind.
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/optim/adamw.hpp"
#include "yoke/optim/sgd.hpp"

namespace yoke::optim {
namespace {

// Two parameters whose gradients are views into one flat bucket, as the gradient engine makes them.
struct Bucketed {
  at::Tensor first = torch::ones({2, 3}).set_requires_grad(true);
  at::Tensor second = torch::ones({4}).set_requires_grad(true);
  at::Tensor bucket = torch::arange(10, torch::kFloat);

  Bucketed() {
    const torch::NoGradGuard no_grad;
    first.mutable_grad() = bucket.narrow(0, 0, 6).view({2, 3});
    second.mutable_grad() = bucket.narrow(0, 6, 4);
  }
};

TEST(ZeroGrad, DropsViewsOfABucketAndLeavesTheBucket) {
  Bucketed model;
  SGD optimizer(std::vector{model.first, model.second});

  optimizer.zero_grad();

  EXPECT_FALSE(model.first.grad().defined());
  EXPECT_FALSE(model.second.grad().defined());
  EXPECT_TRUE(model.bucket.equal(torch::arange(10, torch::kFloat)));
}

TEST(ZeroGrad, ClearsViewsOfABucketInPlace) {
  Bucketed model;
  SGD optimizer(std::vector{model.first, model.second});

  optimizer.zero_grad(/*set_to_none=*/false);

  EXPECT_TRUE(model.bucket.equal(torch::zeros(10)));
  EXPECT_EQ(model.second.grad().data_ptr(), model.bucket.narrow(0, 6, 4).data_ptr());
  (model.second * 3).sum().backward();
  EXPECT_TRUE(model.bucket.narrow(0, 6, 4).equal(torch::full({4}, 3.0)));
}

TEST(ZeroGrad, LeavesTheGraphOfADoubleBackwardBehind) {
  at::Tensor value = torch::full({1}, 2.0).set_requires_grad(true);
  SGD optimizer(std::vector{value});
  value.pow(3).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  ASSERT_TRUE(value.grad().requires_grad());

  optimizer.zero_grad(/*set_to_none=*/false);

  EXPECT_FALSE(value.grad().requires_grad());
  EXPECT_EQ(value.grad().item<double>(), 0);
}

TEST(ZeroGrad, PassesOverParametersWithoutGradient) {
  at::Tensor value = torch::ones({1}).set_requires_grad(true);
  SGD optimizer(std::vector{value});

  optimizer.zero_grad(false);
  optimizer.zero_grad(true);
  optimizer.step();

  EXPECT_FALSE(value.grad().defined());
}

TEST(Step, GradientsMayBeViewsOfABucket) {
  Bucketed model;
  SGD optimizer(std::vector{model.first, model.second}, {.lr = 0.5});

  optimizer.step();

  EXPECT_TRUE(model.first.equal(1 - 0.5 * torch::arange(6).view({2, 3})));
  EXPECT_TRUE(model.second.equal(1 - 0.5 * torch::arange(6, 10)));
}

TEST(Step, AGradientOfAnotherLayoutMeetsItsOwnElements) {
  for (const bool adam : {false, true}) {
    at::Tensor straight = torch::zeros({2, 3}).set_requires_grad(true);
    at::Tensor crossed = torch::zeros({2, 3}).set_requires_grad(true);
    const at::Tensor gradient = torch::arange(1, 7, torch::kFloat).view({2, 3});
    straight.mutable_grad() = gradient;
    crossed.mutable_grad() = gradient.t().contiguous().t();  // the same values, column by column
    const std::vector<at::Tensor> both{straight, crossed};
    std::unique_ptr<Optimizer> optimizer;
    if (adam) {
      optimizer = std::make_unique<AdamW>(both);
    } else {
      optimizer = std::make_unique<SGD>(both, SGDOptions{.lr = 0.1, .momentum = 0.9});
    }

    optimizer->step();
    optimizer->step();

    EXPECT_TRUE(straight.equal(crossed)) << (adam ? "AdamW" : "SGD");
  }
}

TEST(Step, ChannelsLastParametersKeepTheirLayoutInTheState) {
  at::Tensor value = torch::randn({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  value.set_requires_grad(true);
  value.mutable_grad() = torch::ones_like(value);
  SGD optimizer(std::vector{value}, {.momentum = 0.9});

  optimizer.step();

  EXPECT_EQ(optimizer.state_dict().state.at(0)[0].second.strides(), value.strides());
}

TEST(Step, ASparseGradientIsRefusedByName) {
  at::Tensor value = torch::ones({3}).set_requires_grad(true);
  SGD optimizer(std::vector<std::pair<std::string, at::Tensor>>{{"embedding.weight", value}});
  value.mutable_grad() = torch::ones({3}).to_sparse();

  try {
    optimizer.step();
    FAIL() << "took a sparse gradient";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(error.message().find("\"embedding.weight\" is sparse"), std::string::npos);
  }
}

}  // namespace
}  // namespace yoke::optim
