// Two ranks over NCCL, a card each, against one card on the joined batch. Real processes, so this
// one must not touch a card itself.

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "equality.hpp"
#include "yoke/comm/process_ranks.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

// TF32 and algorithms chosen by the batch would differ between the two for their own reasons.
void make_comparable() {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setDeterministicCuDNN(true);
}

std::string compare(comm::World& world, const equality::Setting& setting) {
  const auto alone = equality::train_alone(setting, world.device());
  const auto together = equality::train_rank(world, setting);
  const double difference = equality::difference(together, alone);
  if (difference < setting.tolerance) return {};
  return core::text("differs by ", difference, " from one card");
}

TEST(TwoCardRanks, TrainAsOneCardOnTheJoinedBatch) {
  const auto failures = comm::run_process_ranks(2, {.on_cards = true}, [](comm::World& world) {
    make_comparable();
    if (world.group().backend() != "nccl") return "ranks talk over " + world.group().backend();
    for (const auto& setting : equality::kSettings) {
      if (std::string failure = compare(world, setting); !failure.empty()) return failure;
    }
    return std::string();
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

/// Skips its layer `side` where it is told to.
struct Bypass : torch::nn::Module {
  explicit Bypass(bool skips_side) : skips(skips_side) {
    side = register_module("side", torch::nn::Linear(4, 4));
    out = register_module("out", torch::nn::Linear(4, 1));
  }
  at::Tensor forward(const at::Tensor& x) { return out->forward(skips ? x : side->forward(x)); }
  bool skips;
  torch::nn::Linear side = nullptr;
  torch::nn::Linear out = nullptr;
};

TEST(TwoCardRanks, ALayerThatOneRankDoesNotUseHasTheSameGradientOnBoth) {
  const auto failures = comm::run_process_ranks(2, {.on_cards = true}, [](comm::World& world) {
    auto net = std::make_shared<Bypass>(world.rank() == 1);
    net->to(world.device());
    DistributedDataParallel parallel(net, world);
    parallel(at::ones({3, 4}, world.device())).sum().backward();
    const at::Tensor gradient = net->side->weight.grad();
    if (!gradient.defined()) return std::string("a layer that rank 0 used has no gradient");
    at::Tensor highest = gradient.clone();
    at::Tensor lowest = gradient.clone();
    world.group().all_reduce(highest, comm::ReduceOp::maximum);
    world.group().all_reduce(lowest, comm::ReduceOp::minimum);
    const bool shared = at::equal(highest, lowest) && highest.abs().max().item<float>() > 0.0F;
    return shared ? std::string() : std::string("the ranks hold different gradients");
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace yoke::parallel
