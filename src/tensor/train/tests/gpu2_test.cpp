// Two ranks over NCCL, a card each: captured steps, synchronised norms, memory and contexts. Real
// processes, so this one must not touch a card itself.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "yoke/comm/device.hpp"
#include "yoke/comm/process_ranks.hpp"
#include "yoke/core/text.hpp"
#include "yoke/nn/batch_norm.hpp"
#include "yoke/nn/sync_batch_norm.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"
#include "yoke/train/step.hpp"

namespace yoke::train {
namespace {

using core::text;
using Tensors = Step::Tensors;

class Net : public torch::nn::Cloneable<Net> {
 public:
  explicit Net(bool with_norm) : normed(with_norm) { Net::reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3)));
    if (normed) norm = register_module("norm", nn::BatchNorm2d(16));
    out = register_module("out", torch::nn::Linear(16 * 6 * 6, 10));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = conv->forward(x);
    if (normed) y = norm->forward(y);
    return out->forward(at::relu(y).flatten(1));
  }
  bool normed;
  torch::nn::Conv2d conv = nullptr;
  nn::BatchNorm2d norm = nullptr;
  torch::nn::Linear out = nullptr;
};

constexpr std::int64_t kRows = 12;  // of both ranks together

// Rows [first, first + rows) of the joined batch of a step.
Tensors part(int step, std::int64_t first, std::int64_t rows, at::Device device) {
  const at::Tensor x = at::sin(at::arange(kRows * 3 * 8 * 8, at::kFloat) + step)
                           .view({kRows, 3, 8, 8})
                           .narrow(0, first, rows);
  const at::Tensor y = at::arange(kRows).add(step).remainder(10).narrow(0, first, rows);
  return {x.to(device), y.to(device)};
}

struct Setting {
  precision::Precision precision = precision::Precision::fp32;
  bool capture = false;
  bool normed = false;
  std::int64_t rows_of_rank_0 = kRows / 2;
};

constexpr int kSteps = 20;

std::shared_ptr<Net> start(const Setting& setting, at::Device device) {
  at::manual_seed(7);
  auto model = std::make_shared<Net>(setting.normed);
  model->to(device);
  return model;
}

at::Tensor weights(const Net& model) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : model.parameters())
    parts.push_back(parameter.detach().flatten());
  return at::cat(parts);
}

template <class Forward>
void train(Net& model, comm::World& world, const Setting& setting, const Forward& forward,
           std::int64_t first, std::int64_t rows) {
  optim::SGD optimizer(model.named_parameters(), {.lr = 0.05, .momentum = 0.9});
  Step step(
      [&](const Tensors& batch) { return at::cross_entropy_loss(forward(batch[0]), batch[1]); },
      optimizer, world, {.precision = setting.precision, .capture = setting.capture});
  for (int i = 0; i < kSteps; ++i) step(part(i, first, rows, world.device()));
  if (setting.capture && step.replays() == 0)
    throw std::runtime_error("the step was not captured: " + step.obstacle());
}

// The two ranks' weights against those of one card on the joined batch.
double difference(comm::World& world, const Setting& setting) {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setDeterministicCuDNN(true);
  auto model = start(setting, world.device());
  if (setting.normed) nn::synchronise_norms(*model, world.group());
  DistributedDataParallel parallel(model, world);
  const std::int64_t first = world.rank() == 0 ? 0 : setting.rows_of_rank_0;
  const std::int64_t rows =
      world.rank() == 0 ? setting.rows_of_rank_0 : kRows - setting.rows_of_rank_0;
  train(*model, world, setting, [&](const at::Tensor& x) { return parallel(x); }, first, rows);

  Setting eager = setting;
  eager.capture = false;
  auto alone = start(setting, world.device());
  train(*alone, world, eager, [&](const at::Tensor& x) { return alone->forward(x); }, 0, kRows);
  const at::Tensor expected = weights(*alone);
  return ((weights(*model) - expected).norm() / expected.norm()).item<double>();
}

void on_two_cards(const std::function<std::string(comm::World&)>& body) {
  for (const std::string& failure :
       comm::run_process_ranks(2, {.on_cards = true}, [&](comm::World& world) {
         try {
           return body(world);
         } catch (const std::exception& error) {
           return text("rank ", world.rank(), ": ", error.what());
         }
       })) {
    EXPECT_EQ(failure, "");
  }
}

void expect_close(const Setting& setting, double tolerance) {
  on_two_cards([&](comm::World& world) {
    const double found = difference(world, setting);
    return found <= tolerance ? std::string()
                              : text("differs by ", found, " from one card on the joined batch");
  });
}

TEST(TwoCards, EagerAndCapturedStepsTrainAsOneCardOnTheJoinedBatch) {
  expect_close({}, 1e-5);
  expect_close({.capture = true}, 1e-5);
}

TEST(TwoCards, UnevenRowsTrainAsOneCardOnTheJoinedBatch) {
  expect_close({.rows_of_rank_0 = 9}, 1e-5);
}

TEST(TwoCards, Bf16StaysWithinItsRounding) {
  expect_close({.precision = precision::Precision::bf16, .capture = true}, 2e-2);
}

TEST(TwoCards, SynchronisedNormsTrainAsOneCardOnTheJoinedBatch) {
  expect_close({.normed = true}, 1e-4);
  expect_close({.normed = true, .rows_of_rank_0 = 9}, 1e-4);
  expect_close({.capture = true, .normed = true}, 1e-4);
}

TEST(TwoCards, EachRankHoldsTheSameMemoryAndAContextOnItsOwnCardOnly) {
  on_two_cards([](comm::World& world) {
    (void)difference(world, {});
    at::Tensor bytes = at::zeros({world.size()}, at::kDouble);
    bytes[world.rank()] = static_cast<double>(comm::device_memory(world.device()).peak);
    world.host_group().all_reduce(bytes);
    const double apart = std::abs(bytes[0].item<double>() / bytes[1].item<double>() - 1);
    if (apart > 0.01) return text("the cards' memory differs by ", 100 * apart, " %");
    for (int card = 0; card < 2; ++card) {
      const bool own = card == world.device().index();
      if (c10::cuda::hasPrimaryContext(static_cast<c10::DeviceIndex>(card)) != own)
        return text("rank ", world.rank(), own ? " has no" : " has a", " context on card ", card);
    }
    return std::string();
  });
}

}  // namespace
}  // namespace yoke::train
