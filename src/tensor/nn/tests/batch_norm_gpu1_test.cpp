// The layers on a card: the fused way against torch's operations, gradients included.

#include <tuple>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/kernels/kernels.hpp"
#include "yoke/nn/batch_norm.hpp"
#include "yoke/nn/pooling.hpp"
#include "yoke/nn/stem.hpp"

namespace yoke::nn {
namespace {

struct Outcome {
  at::Tensor y, dx, dresidual, dweight, dbias, mean, var, batches;
};

Outcome run(bool fused, bool relu, bool residual, at::ScalarType dtype) {
  at::manual_seed(5);
  kernels::enable(fused);
  BatchNorm2d norm(BatchNorm2dOptions{.num_features = 24,
                                      .activation = relu ? Activation::relu : Activation::none,
                                      .residual = residual});
  norm->to(at::kCUDA);
  // torch's own operations round between norm, sum and ReLU, which turns the sign of some elements
  // near 0: they compute in float32, on the same rounded numbers.
  const at::ScalarType computed = fused ? dtype : at::kFloat;
  const auto make = [&] {
    return at::randn({6, 24, 10, 9}, at::kCUDA)
        .to(dtype)
        .to(computed)
        .contiguous(at::MemoryFormat::ChannelsLast)
        .set_requires_grad(true);
  };
  const at::Tensor x = make();
  const at::Tensor added = residual ? make() : at::Tensor();
  const at::Tensor y = norm->forward(x, added);
  y.backward(at::randn({6, 24, 10, 9}, at::kCUDA)
                 .to(dtype)
                 .to(computed)
                 .contiguous(at::MemoryFormat::ChannelsLast));
  kernels::enable(true);
  return {y.detach(),
          x.grad(),
          residual ? added.grad() : at::Tensor(),
          norm->weight.grad(),
          norm->bias.grad(),
          norm->running_mean,
          norm->running_var,
          norm->num_batches_tracked};
}

TEST(BatchNorm2dGpu, FusedAndComposedAgree) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const bool relu : {false, true}) {
      for (const bool residual : {false, true}) {
        const Outcome fused = run(true, relu, residual, dtype);
        const Outcome composed = run(false, relu, residual, dtype);

        const double tolerance = dtype == at::kFloat ? 1e-4 : 2e-2;
        const auto close = [&](const at::Tensor& a, const at::Tensor& b) {
          const at::Tensor wide = b.to(at::kDouble);
          return ((a.to(at::kDouble) - wide).norm() / wide.norm()).item<double>() < tolerance;
        };
        EXPECT_TRUE(close(fused.y, composed.y)) << dtype << relu << residual;
        EXPECT_TRUE(close(fused.dx, composed.dx)) << dtype << relu << residual;
        EXPECT_TRUE(close(fused.dweight, composed.dweight)) << dtype << relu << residual;
        EXPECT_TRUE(close(fused.dbias, composed.dbias)) << dtype << relu << residual;
        EXPECT_TRUE(close(fused.mean, composed.mean)) << dtype << relu << residual;
        EXPECT_TRUE(close(fused.var, composed.var)) << dtype << relu << residual;
        EXPECT_TRUE(fused.batches.equal(composed.batches));
        if (residual) {
          EXPECT_TRUE(close(fused.dresidual, composed.dresidual)) << dtype << relu;
        }
      }
    }
  }
}

TEST(BatchNorm2dGpu, TwoConsumersGetTheGradientOfOne) {
  const auto gradients = [](bool twice) {
    at::manual_seed(5);
    BatchNorm2d norm(
        BatchNorm2dOptions{.num_features = 16, .activation = Activation::relu, .residual = true});
    norm->to(at::kCUDA);
    const auto make = [] {
      return at::randn({4, 16, 8, 8}, at::kCUDA)
          .contiguous(at::MemoryFormat::ChannelsLast)
          .set_requires_grad(true);
    };
    const at::Tensor x = make();
    const at::Tensor residual = make();
    at::Tensor a;
    at::Tensor b;
    if (twice) {
      std::tie(a, b) = norm->forward_twice(x, residual);
    } else {
      a = b = norm->forward(x, residual);
    }
    (a.square().sum() + (b * 3).sum()).backward();
    return std::vector<at::Tensor>{x.grad(), residual.grad(), norm->weight.grad()};
  };

  const auto two = gradients(true);
  const auto one = gradients(false);

  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::allclose(two[i], one[i], 1e-4, 1e-5)) << i;
  }
}

TEST(BatchNorm2dGpu, AGradientOfAGradientIsRefused) {
  BatchNorm2d norm(8);
  norm->to(at::kCUDA);
  const at::Tensor x = at::randn({2, 8, 4, 4}, at::kCUDA)
                           .contiguous(at::MemoryFormat::ChannelsLast)
                           .set_requires_grad(true);
  const at::Tensor loss = norm->forward(x).square().sum();

  EXPECT_THROW(loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true), Error);
}

TEST(StemGpu, FoldedAndPlainAgreeAlsoInTheWeightsGradient) {
  for (const std::int64_t side : {32, 45}) {
    at::manual_seed(3);
    const at::Tensor x = at::randn({4, 3, side, side}, at::kCUDA).to(at::kHalf);
    const at::Tensor values = at::randn({64, 3, 7, 7}, at::kCUDA).to(at::kHalf) * 0.1;
    const auto run = [&](bool fused) {
      kernels::enable(fused);
      const at::Tensor weight = values.clone().set_requires_grad(true);
      const at::Tensor y = stem_convolution(x, weight);
      (y * y).to(at::kFloat).mean().backward();
      kernels::enable(true);
      return std::pair{y.detach().to(at::kFloat), weight.grad().to(at::kFloat)};
    };

    const auto [y, dw] = run(true);
    const auto [expected_y, expected_dw] = run(false);

    EXPECT_LT(((y - expected_y).norm() / expected_y.norm()).item<double>(), 2e-3) << side;
    EXPECT_LT(((dw - expected_dw).norm() / expected_dw.norm()).item<double>(), 1e-2) << side;
  }
}

TEST(GlobalAvgPoolGpu, IsTorchsWithAGradientInTheInputsLayout) {
  const auto run = [](bool ours) {
    at::manual_seed(3);
    const at::Tensor x = at::randn({3, 16, 7, 7}, at::kCUDA)
                             .contiguous(at::MemoryFormat::ChannelsLast)
                             .set_requires_grad(true);
    const at::Tensor y = ours ? global_avg_pool(x) : at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
    y.square().sum().backward();
    return std::pair{y.detach(), x.grad()};
  };

  const auto [y, dx] = run(true);
  const auto [expected_y, expected_dx] = run(false);

  EXPECT_TRUE(at::allclose(y, expected_y, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(dx, expected_dx, 1e-5, 1e-6));
  EXPECT_TRUE(dx.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(MaxPool2dGpu, FusedAndTorchsAgree) {
  const at::Tensor values = at::randn({3, 16, 15, 13}, at::kCUDA);
  const auto gradient = [&](bool fused) {
    kernels::enable(fused);
    const at::Tensor x =
        values.contiguous(at::MemoryFormat::ChannelsLast).clone().set_requires_grad(true);
    const at::Tensor y = max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
    y.square().sum().backward();
    kernels::enable(true);
    return std::pair{y.detach(), x.grad()};
  };

  const auto [y, dx] = gradient(true);
  const auto [expected_y, expected_dx] = gradient(false);

  EXPECT_TRUE(y.equal(expected_y));
  EXPECT_TRUE(at::allclose(dx, expected_dx, 1e-5, 1e-6));
}

}  // namespace
}  // namespace yoke::nn
