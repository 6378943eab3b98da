#include "yoke/precision/autocast.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::precision {
namespace {

TEST(Precision, NamesGoBothWays) {
  for (const std::string& word : precision_names()) {
    EXPECT_EQ(name(precision_from_name(word)), word);
  }
}

TEST(Precision, AnUnknownNameBringsTheNearest) {
  try {
    (void)precision_from_name("bf61");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_NE(error.hint().find("bf16"), std::string::npos) << error.hint();
  }
}

TEST(Precision, B076Fp16OnACpuIsRefusedAndBf16IsNot) {
  EXPECT_THROW(require_supported(Precision::fp16, at::kCPU), Error);
  EXPECT_THROW(require_supported(Precision::tf32, at::kCPU), Error);
  EXPECT_NO_THROW(require_supported(Precision::bf16, at::kCPU));
  EXPECT_NO_THROW(require_supported(Precision::fp32, at::kCPU));
}

TEST(Precision, B076OnlyFp16TurnsTheScalerOn) {
  EXPECT_TRUE(needs_scaler(Precision::fp16));
  EXPECT_FALSE(needs_scaler(Precision::bf16));
  EXPECT_FALSE(needs_scaler(Precision::tf32));
  EXPECT_FALSE(needs_scaler(Precision::fp32));
}

TEST(Autocast, ProductsAreLowAndSumsAreNot) {
  const at::Tensor a = at::randn({4, 4});
  const Autocast autocast(Precision::bf16, at::kCPU);

  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
  EXPECT_EQ(at::sum(a).scalar_type(), at::kFloat);
}

TEST(Autocast, EndsAsItBeganAlsoNested) {
  const at::Tensor a = at::randn({4, 4});
  {
    const Autocast outer(Precision::bf16, at::kCPU);
    {
      const Autocast none(Precision::fp32, at::kCPU);
      const Autocast inner(Precision::bf16, at::kCPU);
    }
    EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
    EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
  }

  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
}

TEST(Autocast, WeightsThatChangeAreCastAgain) {
  const at::Tensor x = at::ones({1, 1});
  const at::Tensor weight = at::ones({1, 1}).set_requires_grad(true);
  const auto product = [&] {
    const Autocast autocast(Precision::bf16, at::kCPU);
    return at::mm(x, weight).item<float>();
  };
  EXPECT_EQ(product(), 1);

  {
    const at::NoGradGuard no_grad;
    weight.fill_(3);
  }

  EXPECT_EQ(product(), 3);
}

}  // namespace
}  // namespace yoke::precision
