// Batch norms over ranks: what one process computes on the joined batch.

#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include "toys.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/nn/batch_norm.hpp"
#include "yoke/nn/sync_batch_norm.hpp"
#include "yoke/optim/sgd.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {
namespace {

class NormedNet : public torch::nn::Cloneable<NormedNet> {
 public:
  NormedNet() { NormedNet::reset(); }
  void reset() override {
    net = register_module("net", std::make_shared<toys::Net>());
    norm = register_module("norm", nn::BatchNorm2d(5));
    norm->to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor hidden = net->first->forward(input).view({-1, 5, 1, 1});
    return net->second->forward(norm->forward(hidden).flatten(1).tanh());
  }

  std::shared_ptr<toys::Net> net;
  nn::BatchNorm2d norm = nullptr;
};

struct Outcome {
  at::Tensor weights;
  at::Tensor running_mean;
  at::Tensor running_var;
};

Outcome trained(comm::World& world, std::int64_t batch_size, bool synchronised,
                std::int64_t accumulate = 1, std::int64_t samples = 38) {
  auto model = std::make_shared<NormedNet>();
  if (synchronised) {
    EXPECT_EQ(nn::synchronise_norms(*model, world.group()), 1U);
  }
  // 38 = 3 * 12 + 2: of three ranks one has no row in the last step.
  data::DataLoader loader(toys::points(samples), world, toys::batches_of(batch_size));
  optim::SGD optimizer(model->named_parameters(), {.lr = 0.2, .momentum = 0.9});
  Trainer trainer(AnyModule(model), world, {.epochs = 3, .accumulate = accumulate});
  (void)trainer.fit(loader, optimizer);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : model->parameters())
    parts.push_back(parameter.detach().flatten());
  return {at::cat(parts), model->norm->running_mean.clone(), model->norm->running_var.clone()};
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

TEST(SyncBatchNorm, RanksWithUnequalAndNoRowsTrainAsOneProcessDoes) {
  comm::World world = comm::World::of(comm::alone_group());
  const Outcome expected = trained(world, 12, /*synchronised=*/false);
  for (const int ranks : {1, 2, 3}) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
    comm::run_local_ranks(ranks, [&](comm::World& own) {
      outcomes[static_cast<std::size_t>(own.rank())] = trained(own, 12 / ranks, true);
    });
    for (const Outcome& outcome : outcomes) {
      EXPECT_LE(difference(outcome.weights, expected.weights), 1e-10) << ranks;
      EXPECT_LE(difference(outcome.running_mean, expected.running_mean), 1e-10) << ranks;
      EXPECT_LE(difference(outcome.running_var, expected.running_var), 1e-10) << ranks;
    }
  }
}

// 47 = 3 * 12 + 11: in the last window one rank has 3 and 3 rows, the other 3 and 2.
TEST(SyncBatchNorm, MicroBatchesOfUnequalRowsWeighAsTheirWindow) {
  // Norms see micro-batches, so the reference takes micro-batches of the joined size.
  comm::World world = comm::World::of(comm::alone_group());
  const Outcome expected = trained(world, 6, /*synchronised=*/false, /*accumulate=*/2, 47);
  std::vector<Outcome> outcomes(2);
  comm::run_local_ranks(2, [&](comm::World& own) {
    outcomes[static_cast<std::size_t>(own.rank())] = trained(own, 3, true, /*accumulate=*/2, 47);
  });
  for (const Outcome& outcome : outcomes)
    EXPECT_LE(difference(outcome.weights, expected.weights), 1e-10);
}

TEST(SyncBatchNorm, WithoutItRanksTrainAnotherModel) {
  comm::World world = comm::World::of(comm::alone_group());
  const Outcome joined = trained(world, 12, false);
  std::vector<Outcome> outcomes(2);
  comm::run_local_ranks(2, [&](comm::World& own) {
    outcomes[static_cast<std::size_t>(own.rank())] = trained(own, 6, false);
  });

  EXPECT_GT(difference(outcomes[0].weights, joined.weights), 1e-4);
}

// Rank 0 has no row; rank 1 has [4, 8]: mean 6, biased variance 4.
TEST(SyncBatchNorm, B014AnEmptyRankTakesPartAndNothingBecomesNaN) {
  for (const bool input_gradient : {true, false}) {
    comm::run_local_ranks(2, [&](comm::World& world) {
      nn::BatchNorm2d norm(nn::BatchNorm2dOptions{.num_features = 1, .momentum = 1});
      norm->group = &world.group();
      const at::Tensor x =
          world.rank() == 0 ? at::empty({0, 1, 1, 1}) : at::tensor({4.0F, 8.0F}).view({2, 1, 1, 1});
      at::Tensor input = x.clone().set_requires_grad(input_gradient);
      const at::Tensor y = norm->forward(input);
      (y * at::arange(y.size(0)).view({-1, 1, 1, 1})).sum().backward();

      EXPECT_EQ(y.size(0), x.size(0));
      EXPECT_FLOAT_EQ(norm->running_mean.item<float>(), 6);
      EXPECT_FLOAT_EQ(norm->running_var.item<float>(), 8);  // unbiased: 4 * 2 / 1
      EXPECT_TRUE(at::isfinite(y).all().item<bool>());
      EXPECT_TRUE(at::isfinite(norm->weight.grad()).all().item<bool>());
      if (world.rank() == 1) {
        EXPECT_TRUE(at::allclose(y.flatten(), at::tensor({-1.0F, 1.0F}), 1e-4, 1e-4));
      }
      if (input_gradient) {
        EXPECT_TRUE(at::isfinite(input.grad()).all().item<bool>());
        EXPECT_EQ(input.grad().sizes(), x.sizes());
      }
    });
  }
}

TEST(SyncBatchNorm, TorchsOwnNormsAreRefusedByName) {
  comm::World world = comm::World::of(comm::alone_group());
  torch::nn::Sequential model(torch::nn::BatchNorm2d(3));

  try {
    (void)nn::synchronise_norms(*model, world.group());
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(error.message().find("\"0\""), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace yoke::train
