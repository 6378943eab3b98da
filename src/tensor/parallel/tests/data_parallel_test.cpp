#include "yoke/parallel/data_parallel.hpp"

#include <atomic>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "toys.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::parallel {
namespace {

struct Net : torch::nn::Cloneable<Net> {
  Net() { reset(); }  // NOLINT: Cloneable's protocol
  void reset() override {
    hidden = register_module("hidden", torch::nn::Linear(3, 4));
    out = register_module("out", torch::nn::Linear(4, 2));
  }
  at::Tensor forward(const at::Tensor& x) { return out->forward(at::tanh(hidden->forward(x))); }
  torch::nn::Linear hidden = nullptr;
  torch::nn::Linear out = nullptr;
};

/// Records what each replica is given.
struct Probe : torch::nn::Cloneable<Probe> {
  Probe() { reset(); }  // NOLINT: Cloneable's protocol
  void reset() override { w = register_parameter("w", at::ones({1})); }
  at::Tensor forward(const at::Tensor& x, double delta) { return x * w + delta; }
  at::Tensor w;
};

DataParallelOptions replicas(int count) {
  DataParallelOptions options;
  for (int id = 0; id < count; ++id) options.device_ids.push_back(id);
  return options;
}

at::Tensor rows(std::int64_t count) {
  return at::sin(at::arange(count * 3, at::kFloat)).view({count, 3});
}

class Replicas : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, Replicas, ::testing::Values(1, 2, 3, 4));

TEST_P(Replicas, GiveTheGradientsOfTheModuleAlone) {
  auto model = std::make_shared<Net>();
  auto alone = std::dynamic_pointer_cast<Net>(model->clone());
  DataParallel parallel(model, replicas(GetParam()));
  for (const std::int64_t batch : {7, 1, 2, 12}) {
    model->zero_grad();
    alone->zero_grad();

    parallel(rows(batch)).square().mean().backward();
    alone->forward(rows(batch)).square().mean().backward();

    for (std::size_t i = 0; i < model->parameters().size(); ++i) {
      EXPECT_TRUE(
          at::allclose(model->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-5, 1e-7))
          << batch;
    }
  }
}

TEST_P(Replicas, FollowTheWeightsOfTheModule) {
  auto model = std::make_shared<Net>();
  DataParallel parallel(model, replicas(GetParam()));
  for (int step = 0; step < 3; ++step) {
    {
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : model->parameters()) parameter.add_(0.1);
    }
    EXPECT_TRUE(at::allclose(parallel(rows(8)), model->forward(rows(8))));
  }
}

TEST(DataParallel, B021aRowsAreDealtAsByChunkAndOtherArgumentsGoToEveryUsedReplica) {
  DataParallel parallel(std::make_shared<Probe>(), replicas(4));

  const at::Tensor five = parallel(at::arange(5, at::kFloat), 3.0);
  const auto of_five = parallel.report().replicas;
  const at::Tensor one = parallel(at::ones({1}), 3.0);

  EXPECT_TRUE(at::equal(five.detach(), at::arange(5, at::kFloat) + 3.0));
  EXPECT_EQ(of_five[0].rows, 2);
  EXPECT_EQ(of_five[1].rows, 2);
  EXPECT_EQ(of_five[2].rows, 1);
  EXPECT_EQ(of_five[3].rows, 0);
  EXPECT_DOUBLE_EQ(one.item<double>(), 4.0);
}

TEST(DataParallel, B021bListsOfUnequalRowsAreRefused) {
  struct List : torch::nn::Cloneable<List> {
    List() { reset(); }  // NOLINT: Cloneable's protocol
    void reset() override { w = register_parameter("w", at::ones({1})); }
    at::Tensor forward(const std::vector<at::Tensor>& xs) { return xs[0] * w; }
    at::Tensor w;
  };
  DataParallel parallel(std::make_shared<List>(), replicas(2));
  try {
    parallel(std::vector<at::Tensor>{at::ones({5}), at::ones({1})});
    FAIL() << "rows were dropped in silence";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("5 and 1 differ"), std::string::npos) << error.what();
  }
}

TEST(DataParallel, B021cScalarsAreTheMeanWeightedByRows) {
  struct MeanOf : torch::nn::Cloneable<MeanOf> {
    MeanOf() { reset(); }  // NOLINT: Cloneable's protocol
    void reset() override { w = register_parameter("w", at::ones({1})); }
    at::Tensor forward(const at::Tensor& x) { return (x * w).mean(); }
    at::Tensor w;
  };
  auto model = std::make_shared<MeanOf>();
  DataParallel parallel(model, replicas(2));

  const at::Tensor mean = parallel(at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F}));
  mean.backward();

  EXPECT_DOUBLE_EQ(mean.item<double>(), 3.0);
  EXPECT_NEAR(model->w.grad().item<double>(), 3.0, 1e-6);
}

struct Norm : torch::nn::Cloneable<Norm> {
  Norm() { reset(); }  // NOLINT: Cloneable's protocol
  void reset() override { norm = register_module("norm", torch::nn::BatchNorm1d(1)); }
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x); }
  torch::nn::BatchNorm1d norm = nullptr;
};

TEST(DataParallel, B021dBuffersAreTheFirstReplicasAndComeBackIntoTheModule) {
  auto model = std::make_shared<Norm>();
  DataParallel parallel(model, replicas(2));

  parallel(at::tensor({0.0F, 2.0F, 10.0F, 14.0F}).view({4, 1}));

  EXPECT_NEAR(model->norm->running_mean.item<double>(), 0.1, 1e-6);
  EXPECT_NEAR(model->norm->running_var.item<double>(), 1.1, 1e-6);
}

TEST(DataParallel, EvaluationUsesTheModulesStatisticsOnEveryReplica) {
  auto model = std::make_shared<Norm>();
  DataParallel parallel(model, replicas(2));
  parallel(at::tensor({0.0F, 2.0F, 10.0F, 14.0F}).view({4, 1}));
  model->eval();
  const at::NoGradGuard no_grad;

  const at::Tensor out = parallel(at::ones({4, 1}));

  EXPECT_TRUE(at::equal(out, model->forward(at::ones({4, 1}))));
}

TEST(DataParallel, InputsGetTheirGradientsBack) {
  auto model = std::make_shared<Net>();
  DataParallel parallel(model, replicas(3));
  const at::Tensor input = rows(7).set_requires_grad(true);
  const at::Tensor twin = rows(7).set_requires_grad(true);

  parallel(input).square().sum().backward();
  model->forward(twin).square().sum().backward();

  EXPECT_TRUE(at::allclose(input.grad(), twin.grad(), 1e-5, 1e-7));
}

TEST(DataParallel, WhatIsReplicatedGoesWholeToEveryReplica) {
  struct Weighted : torch::nn::Cloneable<Weighted> {
    Weighted() { reset(); }  // NOLINT: Cloneable's protocol
    void reset() override { w = register_parameter("w", at::ones({1})); }
    at::Tensor forward(const at::Tensor& x, const at::Tensor& classes) {
      return x * w * classes.sum();
    }
    at::Tensor w;
  };
  DataParallel parallel(std::make_shared<Weighted>(), replicas(2));

  const at::Tensor out = parallel(at::ones({4}), Replicated{at::ones({3})});

  EXPECT_TRUE(at::equal(out.detach(), at::full({4}, 3.0F)));
}

TEST(DataParallel, NestedInputsAndOutputsKeepTheirForm) {
  struct Nested : torch::nn::Cloneable<Nested> {
    Nested() { reset(); }  // NOLINT: Cloneable's protocol
    void reset() override { w = register_parameter("w", at::ones({1})); }
    std::map<std::string, at::Tensor> forward(const std::map<std::string, at::Tensor>& in,
                                              const std::tuple<at::Tensor, double>& pair) {
      return {{"sum", in.at("a") * w + std::get<0>(pair) * std::get<1>(pair)}};
    }
    at::Tensor w;
  };
  DataParallel parallel(std::make_shared<Nested>(), replicas(2));

  const auto out = parallel(std::map<std::string, at::Tensor>{{"a", at::arange(4, at::kFloat)}},
                            std::tuple<at::Tensor, double>{at::ones({4}), 2.0});

  EXPECT_TRUE(at::equal(out.at("sum").detach(), at::arange(4, at::kFloat) + 2.0));
}

TEST(DataParallel, AReplicasErrorComesOutAndTheWrapperStaysUsable) {
  struct Picky : torch::nn::Cloneable<Picky> {
    Picky() { reset(); }  // NOLINT: Cloneable's protocol
    void reset() override { w = register_parameter("w", at::ones({1})); }
    at::Tensor forward(const at::Tensor& x) {
      if (x.max().item<float>() > 3.0F) throw std::runtime_error("bad label 11 in sample 42");
      return x * w;
    }
    at::Tensor w;
  };
  DataParallel parallel(std::make_shared<Picky>(), replicas(2));
  try {
    parallel(at::arange(6, at::kFloat));
    FAIL() << "the replica's error was lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "bad label 11 in sample 42");
  }
  EXPECT_EQ(parallel(at::ones({4})).size(0), 4);
}

TEST(DataParallel, ASecondWrapperOfAModuleIsRefused) {
  auto model = std::make_shared<Net>();
  const DataParallel first(model, replicas(2));
  EXPECT_THROW(DataParallel(model, replicas(2)), Error);
  comm::run_local_ranks(1, [&model](comm::World& world) {
    EXPECT_THROW(DistributedDataParallel(model, world), Error);
  });
}

TEST(DataParallel, AModuleMayBeWrappedAnewAfterItsWrapperEnded) {
  auto model = std::make_shared<Net>();
  {
    const DataParallel first(model, replicas(2));
  }
  EXPECT_NO_THROW(DataParallel(model, replicas(2)));
}

TEST(DataParallel, ADeviceNamedTwiceIsRefused) {
  try {
    DataParallel parallel(std::make_shared<Net>(), {.device_ids = {0, 1, 0}});
    FAIL() << "one device was used twice";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("device 0 twice"), std::string::npos) << error.what();
  }
}

TEST(DataParallel, AModuleThatCannotBeClonedIsRefusedUnlessAFactoryIsGiven) {
  auto model = std::make_shared<toys::Toy2>();
  EXPECT_THROW(DataParallel(model, replicas(2)), Error);

  DataParallel parallel(
      model,
      [](std::shared_ptr<toys::Toy2>&, at::Device) { return std::make_shared<toys::Toy2>(); },
      replicas(2));
  parallel(at::ones({4, 1})).sum().backward();

  EXPECT_DOUBLE_EQ(toys::grad_of(model->a), 4.0);
}

TEST(DataParallel, ReplicasRunAtTheSameTime) {
  // Each replica waits until the other is inside forward too: one after the other this would never
  // end.
  struct Meeting : torch::nn::Cloneable<Meeting> {
    Meeting() { reset(); }  // NOLINT: Cloneable's protocol
    void reset() override { w = register_parameter("w", at::ones({1})); }
    at::Tensor forward(const at::Tensor& x) {
      static std::atomic<int> inside{0};
      ++inside;
      while (inside < 2) std::this_thread::yield();
      return x * w;
    }
    at::Tensor w;
  };
  DataParallel parallel(std::make_shared<Meeting>(), replicas(2));

  EXPECT_EQ(parallel(at::ones({2})).size(0), 2);
}

TEST(DataParallel, AdviceNamesDistributedDataParallelAndWhy) {
  EXPECT_EQ(data_parallel_advice({.devices = 2}), "");
  EXPECT_NE(data_parallel_advice({.devices = 2, .nodes = 3})
                .find("DistributedDataParallel: the job has 3 nodes"),
            std::string::npos);
  EXPECT_NE(data_parallel_advice({.devices = 8}).find("8 devices"), std::string::npos);
  EXPECT_NE(data_parallel_advice(
                {.devices = 2, .first_device_bytes = 4 << 20, .other_device_bytes = 1 << 20})
                .find("the first device holds 4.0 MiB"),
            std::string::npos);
}

TEST(DataParallel, AdviceIsSaidOnceWhenWrappingForManyDevices) {
  auto lines = std::make_shared<core::RecordingConsole>();
  const auto before = core::attach(lines);
  const DataParallel parallel(std::make_shared<Net>(), replicas(5));
  core::attach(before);

  ASSERT_EQ(lines->lines().size(), 1U);
  EXPECT_NE(lines->lines()[0].find("DistributedDataParallel"), std::string::npos);
}

}  // namespace
}  // namespace yoke::parallel
