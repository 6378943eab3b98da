#include "yoke/parallel/mean.hpp"

#include <limits>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "toys.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/error.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::parallel {
namespace {

TEST(Mean, IsTheSumOverTheCountAndSoIsItsGradient) {
  const at::Tensor x = at::full({3}, 2.0).set_requires_grad(true);

  const at::Tensor loss = mean(x.sum(), 4.0);
  loss.backward();

  EXPECT_DOUBLE_EQ(loss.item<double>(), 1.5);
  EXPECT_DOUBLE_EQ(x.grad()[0].item<double>(), 0.25);
}

TEST(Mean, OfNothingIsZeroWhateverTheSum) {
  const at::Tensor x =
      at::full({1}, std::numeric_limits<double>::quiet_NaN()).set_requires_grad(true);

  const at::Tensor loss = mean(x.sum(), 0.0);
  loss.backward();

  EXPECT_DOUBLE_EQ(loss.item<double>(), 0.0);
  EXPECT_DOUBLE_EQ(x.grad().item<double>(), 0.0);
}

TEST(Mean, RefusesCountsThatAreNone) {
  EXPECT_THROW((void)mean(at::ones({}), -1.0), Error);
  EXPECT_THROW((void)mean(at::ones({}), std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW((void)mean(at::ones({2}), 1.0), Error);
}

TEST(Mean, B071MicroBatchesOfUnequalTokensGiveTheMeanOverAllTokens) {
  // 100 tokens of mean 0.5, 900 of mean 0.3, and one micro-batch that is masked whole: 0.32
  comm::run_local_ranks(2, [](comm::World& world) {
    auto model = std::make_shared<toys::Toy2>("a");
    model->to(at::kDouble);
    DistributedDataParallel parallel(model, world);
    const std::vector<std::pair<double, double>> batches{{100, 0.5}, {900, 0.3}, {0, 0.0}};
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const auto [tokens, value] = batches[i];
      std::optional<NoSync> local;
      if (i + 1 < batches.size()) local.emplace(parallel.engine());
      // x = value makes each token's gradient its loss
      const at::Tensor sum =
          parallel(at::full({static_cast<std::int64_t>(tokens), 1}, value, at::kDouble)).sum();
      (mean(sum, tokens) / static_cast<double>(batches.size())).backward();
    }

    EXPECT_NEAR(toys::grad_of(model->a), 0.32, 1e-6);
  });
}

TEST(Mean, TwoCountsInOneBackwardAreRefused) {
  comm::run_local_ranks(1, [](comm::World& world) {
    auto model = std::make_shared<toys::Toy2>();
    DistributedDataParallel parallel(model, world);
    const at::Tensor out = parallel(at::ones({2, 1}));
    const at::Tensor loss = mean(out.sum(), 2.0) + mean(out.sum(), 3.0);
    EXPECT_THROW(loss.backward(), Error);
  });
}

}  // namespace
}  // namespace yoke::parallel
