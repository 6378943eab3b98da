// The same numbers from Python's DistributedDataParallel in the same run.

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>

#include "equality.hpp"
#include "python_twin.hpp"
#include "toys.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using comm::run_local_ranks;
using comm::World;
using core::text;

// Rows of rank r as Python's [rank::2] takes them.
at::Tensor rows_of_rank(const at::Tensor& all, int rank) {
  return all.slice(0, rank, std::nullopt, 2);
}

constexpr std::int64_t kRows = 12;

at::Tensor images(int step) { return equality::images(step, at::kFloat).narrow(0, 0, kRows); }
at::Tensor labels(int step) { return equality::labels(step).narrow(0, 0, kRows); }

// 1e-5 of the norm: the same kernels, sums over ranks in another order.
constexpr double kTolerance = 1e-5;

TEST(DdpTwin, AccumulatedStepsWithMomentumEndAsPythons) {
  twin::Twin python;
  const auto start = equality::fresh_net(at::kFloat);
  for (const auto& item : start->named_parameters())
    python.give("start." + item.key(), item.value().detach());
  for (int step = 0; step < 5; ++step) {
    python.give(text("images.", step), images(step));
    python.give(text("labels.", step), labels(step));
  }

  python.run("steps");

  run_local_ranks(2, [&python](World& world) {
    auto net = equality::fresh_net(at::kFloat);
    DistributedDataParallel parallel(net, world);
    equality::Sgd optimizer(parallel.parameters(), 0.9);
    for (int step = 0; step < 5; ++step) {
      const at::Tensor mine = rows_of_rank(images(step), world.rank());
      const at::Tensor wanted = rows_of_rank(labels(step), world.rank());
      const std::int64_t half = mine.size(0) / 2;
      {
        const auto local = parallel.no_sync();
        (at::cross_entropy_loss(parallel(mine.narrow(0, 0, half)), wanted.narrow(0, 0, half)) / 2)
            .backward();
      }
      (at::cross_entropy_loss(parallel(mine.narrow(0, half, half)), wanted.narrow(0, half, half)) /
       2)
          .backward();
      optimizer.step();
    }
    for (const auto& item : net->named_parameters()) {
      EXPECT_LT(twin::relative_error(item.value(), python["end." + item.key()]), kTolerance)
          << item.key();
    }
  });
}

TEST(DdpTwin, UnusedParametersAreTreatedAsPythonDoesWithItsFlag) {
  twin::Twin python;

  python.run("unused");

  for (const std::string task : {"split", "a"}) {
    run_local_ranks(2, [&](World& world) {
      const std::string uses = task == "a" ? "a" : std::string(1, "ab"[world.rank()]);
      auto model = std::make_shared<toys::Toy2>(uses);
      DistributedDataParallel parallel(model, world);
      parallel(toys::row(1.0 + world.rank())).sum().backward();
      for (const auto& item : model->named_parameters()) {
        const double theirs = python[task + "." + item.key()].item<double>();
        ASSERT_EQ(item.value().grad().defined(), !std::isnan(theirs)) << task << " " << item.key();
        if (item.value().grad().defined()) {
          EXPECT_FLOAT_EQ(item.value().grad().item<float>(), static_cast<float>(theirs));
        }
      }
    });
  }
}

TEST(DdpTwin, ATracedTorchvisionResNetGetsPythonsGradients) {
  twin::Twin python;
  const at::Tensor x = at::sin(at::arange(8 * 3 * 64 * 64, at::kFloat) * 0.37).view({8, 3, 64, 64});
  const at::Tensor y = at::arange(8, at::kLong).remainder(5);
  python.give("x", x);
  python.give("y", y);

  python.run("traced");

  const std::string file = python.path("resnet18.pt").string();
  run_local_ranks(2, [&](World& world) {
    DistributedDataParallel parallel(torch::jit::load(file), world);
    parallel.train();
    for (int step = 0; step < 2; ++step) {
      for (at::Tensor& parameter : parallel.parameters()) parameter.mutable_grad() = at::Tensor();
      const at::Tensor scores = parallel(rows_of_rank(x, world.rank()).contiguous()).toTensor();
      at::cross_entropy_loss(scores, rows_of_rank(y, world.rank())).backward();
    }
    for (const auto& [name, parameter] : parallel.named_parameters()) {
      EXPECT_LT(twin::relative_error(parameter.grad(), python["grad." + name]), 1e-4) << name;
    }
  });
}

}  // namespace
}  // namespace yoke::parallel
