#include <limits>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "yoke/optim/optim.hpp"
#include "yoke/precision/precision.hpp"

namespace yoke::precision {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(GradScalerGpu, B065TheArithmeticIsTheCpus) {
  const at::Tensor weight = at::ones({5}, at::kCUDA).set_requires_grad(true);
  optim::SGD optimizer(Named{{"weight", weight}}, {.lr = 1, .momentum = 0.5});
  GradScaler scaler({at::kCUDA, 0}, {.init_scale = 8, .growth_interval = 2});
  std::vector<double> scales;
  for (const double gradient : {1.0, 1.0, kInfinity, 1.0, 1.0}) {
    const at::Tensor loss = (weight * gradient).sum();
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    scales.push_back(scaler.state().scale);
  }

  EXPECT_EQ(scales, (std::vector<double>{8, 16, 8, 8, 16}));
  EXPECT_EQ(scaler.steps_taken(), 4);
  // momentum 1, 1.5, (skipped), 1.75, 1.875
  EXPECT_TRUE(at::allclose(weight.detach(), at::full({5}, 1 - 6.125, weight.options())));
}

TEST(AutocastGpu, TheFastestFormatOfTheCardIsChosen) {
  const at::Device card(at::kCUDA, 0);
  const Precision chosen = automatic(card);
  const at::Tensor a = at::randn({8, 8}, card);
  const Autocast autocast(chosen, card);

  EXPECT_NO_THROW(require_supported(chosen, card));
  EXPECT_EQ(at::mm(a, a).scalar_type(), chosen == Precision::bf16 ? at::kBFloat16 : at::kHalf);
}

}  // namespace
}  // namespace yoke::precision
