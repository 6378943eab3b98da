// The references against torch's own operations, so that what the kernels are compared with is
// itself right.

#include <limits>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "yoke/kernels/kernels.hpp"

namespace yoke::kernels {
namespace {

struct Problem {
  at::Tensor x, residual, dy;
  BatchNormState state;
};

Problem problem(std::int64_t rows, std::int64_t channels, std::int64_t side, bool residual) {
  at::manual_seed(7);
  const std::vector<std::int64_t> shape{rows, channels, side, side + 1};
  return {.x = at::randn(shape, at::kDouble) * 2 + 3,
          .residual = residual ? at::randn(shape, at::kDouble) : at::Tensor(),
          .dy = at::randn(shape, at::kDouble),
          .state = {.weight = at::rand({channels}) + 0.5,
                    .bias = at::randn({channels}),
                    .running_mean = at::zeros({channels}),
                    .running_var = at::ones({channels}),
                    .num_batches_tracked = at::zeros({}, at::kLong)}};
}

TEST(BatchNormReference, GivesWhatTorchsOperationsGive) {
  for (const std::int64_t channels : {1, 3, 8, 17, 64}) {
    for (const bool residual : {false, true}) {
      for (const bool relu : {false, true}) {
        const Problem p = problem(3, channels, 4, residual);
        const BatchNormOptions options{.relu = relu};
        const at::Tensor x = p.x.clone().set_requires_grad(true);
        const at::Tensor added =
            residual ? p.residual.clone().set_requires_grad(true) : at::Tensor();
        const at::Tensor weight = p.state.weight.to(at::kDouble).set_requires_grad(true);
        const at::Tensor bias = p.state.bias.to(at::kDouble).set_requires_grad(true);
        const at::Tensor mean = at::zeros({channels}, at::kDouble);
        const at::Tensor var = at::ones({channels}, at::kDouble);
        at::Tensor expected =
            at::batch_norm(x, weight, bias, mean, var, true, options.momentum, options.eps, false);
        if (residual) expected = expected + added;
        if (relu) expected = expected.relu();
        expected.backward(p.dy);

        const auto forward = batch_norm_forward_reference(p.x, p.residual, p.state, options);
        const auto backward =
            batch_norm_backward_reference(p.dy, {}, p.x, forward, p.state, options, residual);

        const auto close = [](const at::Tensor& a, const at::Tensor& b) {
          return at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-5, 1e-5);
        };
        EXPECT_TRUE(close(forward.y, expected)) << channels << residual << relu;
        EXPECT_TRUE(close(backward.dx, x.grad())) << channels << residual << relu;
        EXPECT_TRUE(close(backward.dweight, weight.grad())) << channels << residual << relu;
        EXPECT_TRUE(close(backward.dbias, bias.grad())) << channels << residual << relu;
        if (residual) {
          EXPECT_TRUE(close(backward.dresidual, added.grad())) << channels << relu;
        }
        EXPECT_TRUE(close(p.state.running_mean, mean));
        EXPECT_TRUE(close(p.state.running_var, var));
        EXPECT_EQ(p.state.num_batches_tracked.item<std::int64_t>(), 1);
      }
    }
  }
}

TEST(BatchNormReference, ANanPassesTheRelu) {
  Problem p = problem(2, 3, 2, false);
  p.x[0][1][0][0] = std::numeric_limits<double>::quiet_NaN();

  const auto forward = batch_norm_forward_reference(p.x, {}, p.state, {.relu = true});

  EXPECT_TRUE(forward.y.select(1, 1).isnan().all().item<bool>());
  EXPECT_TRUE(forward.y.select(1, 0).isfinite().all().item<bool>());
}

TEST(MaxPoolReference, GivesTorchsGradient) {
  at::manual_seed(7);
  for (const MaxPoolOptions& options :
       std::vector<MaxPoolOptions>{{.kernel_size = 3, .stride = 2, .padding = 1},
                                   {.kernel_size = 2, .stride = 2},
                                   {.kernel_size = 3, .stride = 1, .padding = 1},
                                   {.kernel_size = 2, .stride = 3}}) {
    const at::Tensor x = at::randn({2, 3, 9, 7}).set_requires_grad(true);
    const auto k = options.kernel_size;
    const at::Tensor expected = at::max_pool2d(x, {k, k}, {options.stride, options.stride},
                                               {options.padding, options.padding});
    const at::Tensor dy = at::randn_like(expected);
    expected.backward(dy);

    const auto forward = max_pool_forward_reference(x.detach(), options);
    const at::Tensor dx = max_pool_backward_reference(dy, forward.winner, x.sizes(), options);

    EXPECT_TRUE(forward.y.equal(expected.detach()));
    EXPECT_TRUE(at::allclose(dx, x.grad(), 1e-6, 1e-6)) << k << options.stride;
  }
}

TEST(Kernels, ACpuTensorIsLeftToTorch) {
  const at::Tensor x = at::randn({2, 8, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);

  EXPECT_FALSE(batch_norm_runs(x, {}));
  EXPECT_FALSE(max_pool_runs(x, {}));
}

}  // namespace
}  // namespace yoke::kernels
