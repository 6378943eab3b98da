// The wrappers on one card: gradients equal to the bare module's, no wait of the host, memory.

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/parallel/data_parallel.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::parallel {
namespace {

struct Net : torch::nn::Cloneable<Net> {
  Net() { reset(); }  // NOLINT: Cloneable's protocol
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3)));
    out = register_module("out", torch::nn::Linear(16 * 30 * 30, 10));
  }
  at::Tensor forward(const at::Tensor& x) {
    return out->forward(at::relu(conv->forward(x)).flatten(1));
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::Linear out = nullptr;
};

const at::Device kCard{at::kCUDA, 0};

at::Tensor images() {
  return at::sin(at::arange(8 * 3 * 32 * 32, at::kFloat)).view({8, 3, 32, 32}).to(kCard);
}

void expect_equal_gradients(Net& a, Net& b) {
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    EXPECT_TRUE(at::allclose(a.parameters()[i].grad(), b.parameters()[i].grad(), 1e-4, 1e-6));
  }
}

TEST(DdpOnACard, GivesTheGradientsOfTheModuleAloneInEveryStep) {
  comm::World world = comm::World::join({.backend = "nccl"});
  auto model = std::make_shared<Net>();
  model->to(world.device());
  auto alone = std::dynamic_pointer_cast<Net>(model->clone());
  DistributedDataParallel parallel(model, world,
                                   {.first_bucket_bytes = 1024, .bucket_bytes = 4096});
  for (int step = 0; step < 4; ++step) {
    model->zero_grad(step % 2 == 0);
    alone->zero_grad();

    parallel(images()).square().mean().backward();
    alone->forward(images()).square().mean().backward();

    expect_equal_gradients(*model, *alone);
  }
  EXPECT_GT(parallel.report().early_collectives, 0U);
}

TEST(DdpOnACard, AModuleLeftOnTheCpuIsNamedWithTheLineThatMovesIt) {
  comm::World world = comm::World::join({.backend = "nccl"});
  try {
    DistributedDataParallel parallel(std::make_shared<Net>(), world);
    FAIL() << "a module on the CPU was wrapped for a card";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("conv.weight is on cpu"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("model->to(world.device())"), std::string::npos) << error.what();
  }
}

TEST(DataParallelOnACard, OneDeviceCallsTheModuleItself) {
  auto model = std::make_shared<Net>();
  model->to(kCard);
  auto alone = std::dynamic_pointer_cast<Net>(model->clone());
  DataParallel parallel(model, {.device_ids = {0}});

  parallel(images()).square().mean().backward();
  alone->forward(images()).square().mean().backward();

  expect_equal_gradients(*model, *alone);
  EXPECT_GT(parallel.report().replicas[0].memory_allocated, 0U);
}

}  // namespace
}  // namespace yoke::parallel
