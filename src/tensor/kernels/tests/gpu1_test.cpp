// Every kernel against its reference, before anything is timed.

#include <limits>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "yoke/kernels/kernels.hpp"

namespace yoke::kernels {
namespace {

const at::Device kCard(at::kCUDA, 0);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.to(at::kDouble);
  return ((a.to(at::kDouble) - wide).norm() / (wide.norm() + 1e-12)).item<double>();
}

// Of one rounding of the format; sums are float32.
double tolerance_of(at::ScalarType dtype) {
  return dtype == at::kFloat ? 2e-6 : (dtype == at::kHalf ? 1e-3 : 6e-3);
}

struct Case {
  std::int64_t rows, channels, height, width;
};

struct Problem {
  at::Tensor x, residual, dy;
  BatchNormState state;
};

at::Tensor channels_last(const at::Tensor& tensor) {
  return tensor.contiguous(at::MemoryFormat::ChannelsLast);
}

Problem problem(const Case& c, at::ScalarType dtype, double mean = 0.5, double spread = 2) {
  const std::vector<std::int64_t> shape{c.rows, c.channels, c.height, c.width};
  const auto on = at::TensorOptions(kCard).dtype(at::kFloat);
  const auto make = [&] { return at::randn(shape, on); };
  return {.x = channels_last((make() * spread + mean).to(dtype)),
          .residual = channels_last(make().to(dtype)),
          .dy = channels_last(make().to(dtype)),
          .state = {.weight = at::rand({c.channels}, on) + 0.5,
                    .bias = at::randn({c.channels}, on),
                    .running_mean = at::zeros({c.channels}, on),
                    .running_var = at::ones({c.channels}, on),
                    .num_batches_tracked = at::zeros({}, on.dtype(at::kLong))}};
}

BatchNormState copy_of(const BatchNormState& state) {
  return {.weight = state.weight,
          .bias = state.bias,
          .running_mean = state.running_mean.clone(),
          .running_var = state.running_var.clone(),
          .num_batches_tracked = state.num_batches_tracked.clone()};
}

const std::vector<Case> kCases{{2, 1, 3, 5},    {1, 3, 7, 7},     {4, 8, 5, 3},     {3, 17, 9, 11},
                               {2, 64, 14, 14}, {1, 1000, 3, 3},  {8, 256, 28, 28}, {5, 2048, 7, 7},
                               {2, 8, 1, 1},    {64, 64, 56, 56}, {7, 24, 13, 1}};
const std::vector<at::ScalarType> kTypes{at::kFloat, at::kHalf, at::kBFloat16};

TEST(BatchNormGpu, ForwardAndBackwardMatchTheReferenceOverOddSizes) {
  at::manual_seed(7);
  for (const Case& c : kCases) {
    for (const at::ScalarType dtype : kTypes) {
      for (const bool residual : {false, true}) {
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << c.rows << "x" << c.channels << "x" << c.height << "x" << c.width << " "
                       << dtype << " residual " << residual << " relu " << relu);
          const Problem p = problem(c, dtype);
          const at::Tensor added = residual ? p.residual : at::Tensor();
          const BatchNormState state = copy_of(p.state);
          const BatchNormState other = copy_of(p.state);
          const BatchNormOptions options{.relu = relu};
          ASSERT_TRUE(batch_norm_runs(p.x, state));

          const auto mine = batch_norm_forward(p.x, added, state, options);
          const auto theirs = batch_norm_forward_reference(p.x, added, other, options);
          const auto back = batch_norm_backward(p.dy, {}, p.x, mine, state, options, residual);
          const auto back_theirs =
              batch_norm_backward_reference(p.dy, {}, p.x, theirs, other, options, residual);

          const double tolerance = tolerance_of(dtype);
          EXPECT_LT(relative_error(mine.mean, theirs.mean), 1e-5);
          EXPECT_LT(relative_error(mine.invstd, theirs.invstd), 1e-5);
          EXPECT_LT(relative_error(mine.y, theirs.y), tolerance);
          EXPECT_LT(relative_error(state.running_mean, other.running_mean), 1e-5);
          EXPECT_LT(relative_error(state.running_var, other.running_var), 1e-5);
          EXPECT_EQ(state.num_batches_tracked.item<std::int64_t>(), 1);
          // An element at the ReLU's edge may fall on either side: a few of many.
          const double edge = relu ? 5e-3 : 0;
          EXPECT_LT(relative_error(back.dbias, back_theirs.dbias), 1e-4 + edge);
          EXPECT_LT(relative_error(back.dweight, back_theirs.dweight), 1e-4 + edge);
          if (c.rows * c.height * c.width > 4) {
            EXPECT_LT(relative_error(back.dx, back_theirs.dx), tolerance * 2 + edge);
          }
          if (residual) {
            EXPECT_LT(relative_error(back.dresidual, back_theirs.dresidual), tolerance + edge);
          }
        }
      }
    }
  }
}

TEST(BatchNormGpu, TwoGradientsAreTakenAsTheirSum) {
  for (const bool residual : {false, true}) {
    const Problem p = problem({4, 40, 9, 9}, at::kHalf);
    const at::Tensor other = channels_last(at::randn_like(p.dy));
    const BatchNormOptions options{.relu = true};
    const at::Tensor added = residual ? p.residual : at::Tensor();
    const auto forward = batch_norm_forward(p.x, added, p.state, options);

    const auto two = batch_norm_backward(p.dy, other, p.x, forward, p.state, options, residual);
    const auto one =
        batch_norm_backward(p.dy + other, {}, p.x, forward, p.state, options, residual);

    EXPECT_TRUE(two.dx.equal(one.dx));
    EXPECT_TRUE(two.dweight.equal(one.dweight));
    if (residual) {
      EXPECT_TRUE(two.dresidual.equal(one.dresidual));
    }
  }
}

TEST(BatchNormGpu, ALargeMeanWithASmallSpreadLosesNothing) {
  const Problem p = problem({16, 24, 20, 20}, at::kFloat, 1000, 0.01);

  const auto mine = batch_norm_forward(p.x, {}, p.state, {});
  const auto theirs = batch_norm_forward_reference(p.x, {}, copy_of(p.state), {});

  EXPECT_LT(relative_error(mine.invstd, theirs.invstd), 1e-4);
  EXPECT_LT(relative_error(mine.y, theirs.y), 1e-2);
}

TEST(BatchNormGpu, EqualInputGivesEqualBits) {
  const Problem p = problem({32, 64, 28, 28}, at::kBFloat16);
  const auto first = batch_norm_forward(p.x, p.residual, p.state, {.relu = true});
  const auto first_back = batch_norm_backward(p.dy, {}, p.x, first, p.state, {.relu = true}, true);

  for (int i = 0; i < 5; ++i) {
    const auto again = batch_norm_forward(p.x, p.residual, p.state, {.relu = true});
    const auto back = batch_norm_backward(p.dy, {}, p.x, again, p.state, {.relu = true}, true);

    EXPECT_TRUE(first.y.equal(again.y));
    EXPECT_TRUE(first.mask.equal(again.mask));
    EXPECT_TRUE(first_back.dx.equal(back.dx));
    EXPECT_TRUE(first_back.dweight.equal(back.dweight));
  }
}

TEST(BatchNormGpu, NanAndInfinityStayInTheirChannel) {
  for (const float bad : {kNan, kInfinity}) {
    const Problem p = problem({4, 16, 6, 6}, at::kBFloat16);
    p.x.select(1, 3).select(0, 2)[1][1] = bad;

    const auto forward = batch_norm_forward(p.x, {}, p.state, {.relu = true});

    EXPECT_FALSE(forward.y.select(1, 3).isfinite().all().item<bool>());
    EXPECT_TRUE(forward.y.select(1, 2).isfinite().all().item<bool>());
    EXPECT_TRUE(forward.y.select(1, 4).isfinite().all().item<bool>());
  }
}

TEST(BatchNormGpu, AResidualInAnotherLayoutIsTaken) {
  const Problem p = problem({4, 16, 6, 6}, at::kHalf);
  const at::Tensor plain = p.residual.contiguous();

  const auto a = batch_norm_forward(p.x, p.residual, p.state, {.relu = true});
  const auto b = batch_norm_forward(p.x, plain, p.state, {.relu = true});

  EXPECT_TRUE(a.y.equal(b.y));
}

TEST(BatchNormGpu, WhatTheKernelsCannotTakeIsLeftToTorch) {
  const auto on = at::TensorOptions(kCard);

  EXPECT_FALSE(batch_norm_runs(at::randn({2, 8, 4, 4}, on), {}));  // rows of pixels, not channels
  EXPECT_FALSE(batch_norm_runs(channels_last(at::randn({1, 8, 1, 1}, on)), {}));  // one value each
  EXPECT_FALSE(batch_norm_runs(channels_last(at::randn({0, 8, 4, 4}, on)), {}));
  EXPECT_FALSE(batch_norm_runs(channels_last(at::randn({2, 8, 4, 4}, on.dtype(at::kDouble))), {}));
}

TEST(MaxPoolGpu, ForwardAndBackwardMatchTheReferenceOverOddSizes) {
  at::manual_seed(7);
  for (const Case& c :
       std::vector<Case>{{2, 3, 9, 7}, {1, 8, 5, 5}, {3, 17, 11, 4}, {2, 64, 56, 56}}) {
    for (const at::ScalarType dtype : kTypes) {
      for (const MaxPoolOptions& options :
           std::vector<MaxPoolOptions>{{.kernel_size = 3, .stride = 2, .padding = 1},
                                       {.kernel_size = 2, .stride = 2},
                                       {.kernel_size = 3, .stride = 1, .padding = 1},
                                       {.kernel_size = 2, .stride = 3}}) {
        const at::Tensor x = problem(c, dtype).x;
        ASSERT_TRUE(max_pool_runs(x, options));

        const auto mine = max_pool_forward(x, options);
        const auto theirs = max_pool_forward_reference(x, options);
        const at::Tensor dy = channels_last(at::randn_like(mine.y));
        const at::Tensor dx = max_pool_backward(dy, mine.winner, x.sizes(), options);

        EXPECT_TRUE(mine.y.equal(theirs.y));
        EXPECT_TRUE(mine.winner.equal(theirs.winner)) << c.channels << " " << dtype;
        EXPECT_LT(
            relative_error(dx, max_pool_backward_reference(dy, theirs.winner, x.sizes(), options)),
            tolerance_of(dtype));
      }
    }
  }
}

TEST(StemFoldGpu, MatchesTheReferenceInAnyLayout) {
  at::manual_seed(7);
  for (const std::int64_t channels : {1, 3, 4}) {
    for (const std::int64_t side : {8, 31, 224}) {
      const at::Tensor plain = at::randn({2, channels, side, side + 2}, at::TensorOptions(kCard));
      const StemFoldOptions options{.dtype = at::kHalf,
                                    .padding = 3,
                                    .out_height = (side + 6) / 2,
                                    .out_width = (side + 8) / 2};
      const at::Tensor expected = stem_fold_reference(plain, options);
      for (const at::Tensor& x : {plain, channels_last(plain), plain.to(at::kHalf)}) {
        ASSERT_TRUE(stem_fold_runs(x, options.dtype));
        EXPECT_TRUE(stem_fold(x, options).equal(expected)) << channels << " " << side;
      }
    }
  }
}

TEST(MaxPoolGpu, ANanWins) {
  const at::Tensor x = problem({1, 8, 6, 6}, at::kHalf).x;
  x[0][2][3][3] = kNan;

  const auto forward = max_pool_forward(x, {.kernel_size = 3, .stride = 2, .padding = 1});

  EXPECT_TRUE(forward.y.select(1, 2).isnan().any().item<bool>());
  EXPECT_FALSE(forward.y.select(1, 1).isnan().any().item<bool>());
}

}  // namespace
}  // namespace yoke::kernels
