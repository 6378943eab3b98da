#include "yoke/nn/checkpoint.hpp"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "yoke/core/error.hpp"

namespace yoke::nn {
namespace {

at::Tensor leaf(std::vector<std::int64_t> sizes) {
  return torch::randn(sizes).set_requires_grad(true);
}

// Linear, dropout, ReLU, linear; counts its runs.
struct Block {
  torch::nn::Linear in{4, 8};
  torch::nn::Dropout dropout{0.5};
  torch::nn::Linear out{8, 4};
  int runs = 0;

  at::Tensor forward(const at::Tensor& x) {
    ++runs;
    return out->forward(dropout->forward(in->forward(x)).relu());
  }

  std::vector<at::Tensor> gradients() {
    std::vector<at::Tensor> all;
    for (auto* layer : {&in, &out}) {
      for (at::Tensor& parameter : (*layer)->parameters()) {
        all.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
        parameter.mutable_grad().reset();
      }
    }
    return all;
  }
};

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i].defined() && b[i].defined()) << i;
    EXPECT_TRUE(a[i].equal(b[i])) << i;
  }
}

// Output, gradient of the input and gradients of the parameters from one seed.
template <class Forward>
std::vector<at::Tensor> run(Block& block, const at::Tensor& values, Forward forward) {
  const at::Tensor x = values.detach().clone().set_requires_grad(true);
  torch::manual_seed(11);
  const at::Tensor y = forward(x);
  torch::rand(3);  // backward must go back to the state of forward all the same
  y.pow(2).sum().backward();
  std::vector<at::Tensor> all{y.detach(), x.grad(), torch::rand(2)};
  for (const at::Tensor& gradient : block.gradients()) all.push_back(gradient);
  return all;
}

TEST(Checkpoint, GivesTheSameBitsAsThePlainRunDropoutIncluded) {
  Block block;
  const at::Tensor values = torch::randn({5, 4});
  const auto forward = [&](const at::Tensor& x) { return block.forward(x); };
  const auto plain = run(block, values, forward);
  const int before = block.runs;

  const auto kept = run(block, values, [&](const at::Tensor& x) { return checkpoint(forward, x); });

  expect_equal(plain, kept);
  EXPECT_EQ(block.runs - before, 2);
}

TEST(Checkpoint, NestedAndChainedCallsGiveTheSameBits) {
  Block block;
  const at::Tensor values = torch::randn({5, 4});
  const auto once = [&](const at::Tensor& x) { return block.forward(x); };
  const auto twice = [&](const at::Tensor& x) { return checkpoint(once, checkpoint(once, x)); };
  const auto plain = run(block, values, [&](const at::Tensor& x) { return once(once(once(x))); });

  const auto kept = run(
      block, values, [&](const at::Tensor& x) { return checkpoint(twice, checkpoint(once, x)); });

  expect_equal(plain, kept);
}

TEST(Checkpoint, ParametersInsideGetGradientsWhereNoInputRequiresOne) {
  Block block;
  const at::Tensor x = torch::randn({5, 4});
  const auto forward = [&](const at::Tensor& input) { return block.forward(input); };
  torch::manual_seed(1);
  forward(x).sum().backward();
  const auto plain = block.gradients();

  torch::manual_seed(1);
  checkpoint(forward, x).sum().backward();

  expect_equal(block.gradients(), plain);
}

TEST(Checkpoint, AFunctionWithoutInputsWorks) {
  const at::Tensor w = leaf({3});

  checkpoint([&] { return w * 2; }).sum().backward();

  EXPECT_TRUE(w.grad().equal(torch::full({3}, 2.0)));
}

TEST(Checkpoint, FrozenAllThroughBackwardPassesByQuietly) {
  const at::Tensor x = torch::randn({3});
  const at::Tensor w = leaf({3});

  (checkpoint([](const at::Tensor& t) { return t * 2; }, x) + w).sum().backward();

  EXPECT_TRUE(w.grad().equal(torch::ones({3})));
}

TEST(Checkpoint, SeveralTensorsGoInAndOut) {
  const at::Tensor a = leaf({3});
  const at::Tensor b = torch::randn({3});
  const at::Tensor c = leaf({3});

  const auto [product, top, sum] = checkpoint(
      [](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
        return std::tuple(x * y * z, (x * y * z).argmax(), x + z);
      },
      a, b, c);
  product.sum().backward();  // nothing comes for `sum`

  EXPECT_EQ(top.item<std::int64_t>(), (a * b * c).argmax().item<std::int64_t>());
  EXPECT_FALSE(top.requires_grad());
  EXPECT_TRUE(sum.equal(a + c));
  EXPECT_TRUE(torch::allclose(a.grad(), b * c));
  EXPECT_FALSE(b.grad().defined());
  EXPECT_TRUE(torch::allclose(c.grad(), a * b));
}

TEST(Checkpoint, AListGoesInAndOut) {
  const Tensors inputs{leaf({2}), leaf({2})};
  const auto reversed = [](const Tensors& list) { return Tensors{list[1] * 3, list[0]}; };

  const Tensors outputs = checkpoint_list(reversed, inputs);
  (outputs[0].sum() + outputs[1].sum()).backward();

  EXPECT_TRUE(inputs[1].grad().equal(torch::full({2}, 3.0)));
  EXPECT_TRUE(inputs[0].grad().equal(torch::ones({2})));
}

TEST(Checkpoint, AModuleHolderIsAFunction) {
  torch::nn::Linear layer(3, 2);
  const at::Tensor x = torch::randn({4, 3});

  const at::Tensor y = checkpoint({.preserve_rng_state = false}, layer, x);
  y.sum().backward();

  EXPECT_TRUE(y.equal(layer->forward(x)));
  EXPECT_TRUE(layer->bias.grad().equal(torch::full({2}, 4.0)));
}

TEST(Checkpoint, BackwardTwiceOverAKeptGraphAddsUp) {
  const at::Tensor x = leaf({3});
  const at::Tensor y = checkpoint([](const at::Tensor& t) { return t * t; }, x).sum();

  y.backward({}, /*retain_graph=*/true);
  y.backward();

  EXPECT_TRUE(x.grad().equal(4 * x));
}

TEST(Checkpoint, AnInputChangedInPlaceBeforeBackwardIsNoticed) {
  const at::Tensor x = leaf({3});
  at::Tensor h = x * 1;
  const at::Tensor y = checkpoint([](const at::Tensor& t) { return t * t; }, h).sum();

  h.add_(1);

  EXPECT_THROW(y.backward(), c10::Error);
}

TEST(Checkpoint, WithoutGradModeItRunsOnceAndKeepsNothing) {
  const torch::NoGradGuard no_grad;
  int runs = 0;

  const at::Tensor y = checkpoint([&](const at::Tensor& t) { return ++runs, t * 2; }, leaf({3}));

  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(y.requires_grad());
}

TEST(Checkpoint, TheSecondRunSeesTheAutocastStateOfTheFirst) {
  torch::nn::Linear layer(4, 4);
  std::vector<at::ScalarType> seen;
  const at::Tensor x = leaf({2, 4});
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);

  at::Tensor y = checkpoint(
      [&](const at::Tensor& t) {
        const at::Tensor h = layer->forward(t);
        seen.push_back(h.scalar_type());
        return h;
      },
      x);
  // the same weight again in the region: it must not meet a cast that has no graph
  y = y + layer->forward(x);
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  y.to(at::kFloat).sum().backward();

  EXPECT_EQ(seen, (std::vector<at::ScalarType>{at::kBFloat16, at::kBFloat16}));
  EXPECT_TRUE(layer->bias.grad().equal(torch::full({4}, 4.0)));
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(Checkpoint, AnExceptionInTheSecondRunComesOutAndTheRandomStateIsBack) {
  int runs = 0;
  const at::Tensor y = checkpoint(
      [&](const at::Tensor& t) {
        torch::rand(1);
        if (++runs == 2) throw Error(Code::io, "second run", "");
        return t * 2;
      },
      leaf({3}));
  torch::manual_seed(3);
  const at::Tensor expected = torch::rand(4);
  torch::manual_seed(3);

  EXPECT_THROW(y.sum().backward(), Error);
  EXPECT_TRUE(torch::rand(4).equal(expected));
}

TEST(Checkpoint, AnotherNumberOfOutputsInTheSecondRunIsRefused) {
  int runs = 0;
  const Tensors y = checkpoint_list(
      [&](const Tensors& list) { return ++runs == 1 ? list : Tensors{list[0], list[0]}; },
      {leaf({3})});

  EXPECT_THROW(y[0].sum().backward(), Error);
}

TEST(Checkpoint, GradAndDoubleBackwardAreRefusedByName) {
  const at::Tensor x = leaf({3});
  const auto square = [](const at::Tensor& t) { return t * t; };

  EXPECT_THROW(torch::autograd::grad({checkpoint(square, x).sum()}, {x}), Error);
  EXPECT_THROW(checkpoint(square, x).sum().backward({}, {}, /*create_graph=*/true), Error);
}

}  // namespace
}  // namespace yoke::nn
