#include "yoke/optim/clip_grad_norm.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::optim {
namespace {

at::Tensor with_gradient(const std::vector<double>& gradient,
                         at::ScalarType dtype = torch::kDouble) {
  at::Tensor value = torch::zeros({std::int64_t(gradient.size())}, dtype).set_requires_grad(true);
  value.mutable_grad() = torch::tensor(gradient, torch::kDouble).to(dtype);
  return value;
}

TEST(ClipGradNorm, ScalesAllGradientsByOneFactor) {
  const std::vector<at::Tensor> parameters{with_gradient({3, 0}), with_gradient({4}),
                                           torch::ones({2}).set_requires_grad(true)};

  const at::Tensor norm = clip_grad_norm_(parameters, 1.0);

  EXPECT_DOUBLE_EQ(norm.item<double>(), 5);
  EXPECT_NEAR(parameters[0].grad()[0].item<double>(), 3 / (5 + 1e-6), 1e-12);
  EXPECT_NEAR(parameters[1].grad()[0].item<double>(), 4 / (5 + 1e-6), 1e-12);
  EXPECT_FALSE(parameters[2].grad().defined());
}

TEST(ClipGradNorm, SmallGradientsStay) {
  const std::vector<at::Tensor> parameters{with_gradient({3}), with_gradient({4})};

  (void)clip_grad_norm_(parameters, 6.0);

  EXPECT_EQ(parameters[0].grad().item<double>(), 3);
  EXPECT_EQ(parameters[1].grad().item<double>(), 4);
}

TEST(ClipGradNorm, OtherNormsAndMixedDtypesWork) {
  const std::vector<at::Tensor> parameters{with_gradient({3, -1}),
                                           with_gradient({4}, torch::kBFloat16)};

  EXPECT_DOUBLE_EQ(clip_grad_norm_(parameters, 100, 1).item<double>(), 8);
  EXPECT_DOUBLE_EQ(
      clip_grad_norm_(parameters, 100, std::numeric_limits<double>::infinity()).item<double>(), 4);
}

TEST(ClipGradNorm, WritesIntoTheBucketOfTheGradients) {
  const at::Tensor bucket = torch::tensor({3.0, 4.0});
  at::Tensor value = torch::zeros({2}).set_requires_grad(true);
  value.mutable_grad() = bucket.narrow(0, 0, 2);

  (void)clip_grad_norm_({value}, 0.5);

  EXPECT_NEAR(bucket.norm().item<double>(), 0.5, 1e-6);
}

TEST(ClipGradNorm, WithoutGradientsTheNormIsZero) {
  EXPECT_EQ(clip_grad_norm_({torch::ones({2}).set_requires_grad(true)}, 1).item<double>(), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1).item<double>(), 0);
}

TEST(ClipGradNorm, ANotANumberIsReturnedAndNotHidden) {
  const std::vector<at::Tensor> parameters{with_gradient({std::nan(""), 1}), with_gradient({4})};

  EXPECT_TRUE(std::isnan(clip_grad_norm_(parameters, 1).item<double>()));
  EXPECT_TRUE(std::isnan(parameters[1].grad().item<double>()));
}

TEST(ClipGradNorm, ANegativeLimitIsRefused) {
  EXPECT_THROW((void)clip_grad_norm_({}, -1), Error);
  EXPECT_THROW((void)clip_grad_norm_({}, 1, 0), Error);
}

}  // namespace
}  // namespace yoke::optim
