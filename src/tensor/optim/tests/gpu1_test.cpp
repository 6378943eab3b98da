#include <memory>

#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "yoke/optim/optim.hpp"

namespace yoke::optim {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;
using Make = std::function<std::unique_ptr<Optimizer>(const Named&)>;

const std::vector<Make> kKinds{
    [](const Named& named) -> std::unique_ptr<Optimizer> {
      return std::make_unique<SGD>(
          named, SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    },
    [](const Named& named) -> std::unique_ptr<Optimizer> {
      return std::make_unique<AdamW>(named, AdamWOptions{.lr = 0.1, .amsgrad = true});
    },
};

// A dense, a channels-last and a strided parameter with gradients of their own.
Named parameters(at::Device device) {
  torch::manual_seed(3);
  Named named;
  const at::Tensor image = torch::randn({4, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const at::Tensor& value : {torch::randn({7, 3}), image, torch::randn({4, 6})}) {
    named.emplace_back(std::to_string(named.size()), value.to(device));
  }
  named.back().second = named.back().second.slice(1, 0, 6, 2);
  for (auto& [name, value] : named) {
    value.set_requires_grad(true);
    value.mutable_grad() = torch::randn(value.sizes()).to(device);
  }
  return named;
}

// Fails where a call waits for the device.
class NoWaiting {
 public:
  NoWaiting() { c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR); }
  ~NoWaiting() {
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
  }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;
};

TEST(OptimGpu, StepsGiveTheValuesOfTheCpu) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    const Named here = parameters(at::kCPU);
    const Named there = parameters(at::kCUDA);
    const auto on_cpu = kKinds[kind](here);
    const auto on_card = kKinds[kind](there);

    for (int k = 0; k < 3; ++k) {
      on_cpu->step();
      on_card->step();
    }

    for (std::size_t i = 0; i < here.size(); ++i) {
      const at::Tensor difference = here[i].second - there[i].second.cpu();
      EXPECT_LT(difference.norm().item<double>(), 1e-5 * here[i].second.norm().item<double>())
          << kind << ' ' << i;
    }
  }
}

TEST(OptimGpu, B086StateSavedOnTheCpuGoesToTheCardWithItsStepCount) {
  AdamW saved(parameters(at::kCPU));
  for (int k = 0; k < 3; ++k) saved.step();
  const OptimizerState state = saved.state_dict();
  AdamW optimizer(parameters(at::kCUDA));

  optimizer.load_state_dict(state);
  optimizer.step();

  const OptimizerState loaded = optimizer.state_dict();
  EXPECT_EQ(loaded.state.at(0)[0].second.item<double>(), 4);
  EXPECT_TRUE(loaded.state.at(0)[0].second.is_cpu());
  EXPECT_TRUE(loaded.state.at(0)[1].second.is_cuda());
  EXPECT_TRUE(state.state.at(0)[1].second.is_cpu());
}

TEST(OptimGpu, ATrainingStepNeverWaitsForTheDevice) {
  Named dense = parameters(at::kCUDA);
  dense.pop_back();  // the strided one takes AdamW's slow way, which reads its step count
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : dense) values.push_back(value);
  for (const Make& make : kKinds) {
    const auto optimizer = make(dense);
    optimizer->step();
    const NoWaiting no_waiting;

    (void)clip_grad_norm_(values, 1.0);
    optimizer->step();
    optimizer->zero_grad(/*set_to_none=*/false);
  }
}

}  // namespace
}  // namespace yoke::optim
