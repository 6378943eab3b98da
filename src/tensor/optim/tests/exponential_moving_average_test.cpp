#include "yoke/optim/exponential_moving_average.hpp"

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::optim {
namespace {

struct Model : torch::nn::Module {
  at::Tensor weight = register_parameter("weight", torch::zeros({2}));
  at::Tensor counter = register_buffer("counter", torch::zeros({}, torch::kLong));

  void set(double value, std::int64_t count) {
    const torch::NoGradGuard no_grad;
    weight.fill_(value);
    counter.fill_(count);
  }
};

TEST(ExponentialMovingAverage, FollowsItsFormulaAndCopiesBuffers) {
  Model model;
  model.set(1.0, 5);
  ExponentialMovingAverage ema(model, {.decay = 0.75});

  model.set(2.0, 6);
  ema.update();
  model.set(4.0, 7);
  ema.update();

  const auto state = ema.state_dict();
  const double expected = 0.75 * (0.75 * 1.0 + 0.25 * 2.0) + 0.25 * 4.0;
  EXPECT_EQ(state[0].first, "weight");
  EXPECT_TRUE(state[0].second.equal(torch::full({2}, expected)));
  EXPECT_EQ(state[1].first, "counter");
  EXPECT_EQ(state[1].second.item<std::int64_t>(), 7);
}

TEST(ExponentialMovingAverage, IsInTheModuleForAScopeAndTheModuleIsBackAfterwards) {
  Model model;
  ExponentialMovingAverage ema(model, {.decay = 0.5});
  model.set(2.0, 3);
  ema.update();
  const void* tensor = model.weight.unsafeGetTensorImpl();
  const void* memory = model.weight.data_ptr();

  {
    const auto averaged = ema.swapped_in();

    EXPECT_TRUE(model.weight.equal(torch::full({2}, 1.0)));
  }

  EXPECT_TRUE(model.weight.equal(torch::full({2}, 2.0)));
  EXPECT_TRUE(ema.state_dict()[0].second.equal(torch::full({2}, 1.0)));
  EXPECT_TRUE(model.weight.requires_grad());
  EXPECT_EQ(model.weight.unsafeGetTensorImpl(), tensor);
  EXPECT_EQ(model.weight.data_ptr(), memory);
}

TEST(ExponentialMovingAverage, GoesOnFromItsSavedState) {
  Model model;
  ExponentialMovingAverage first(model, {.decay = 0.5});
  model.set(8.0, 1);
  first.update();
  ExponentialMovingAverage second(model, {.decay = 0.5});

  second.load_state_dict(first.state_dict());
  first.update();
  second.update();

  EXPECT_TRUE(second.state_dict()[0].second.equal(torch::full({2}, 6.0)));
  EXPECT_TRUE(second.state_dict()[0].second.equal(first.state_dict()[0].second));
}

TEST(ExponentialMovingAverage, StateOfAnotherModelIsRefusedByName) {
  Model model;
  ExponentialMovingAverage ema(model);

  try {
    ema.load_state_dict(
        {{"weight", torch::zeros({3})}, {"counter", torch::zeros({}, torch::kLong)}});
    FAIL() << "took another shape";
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "load averaged weights: 2 tensors saved, 2 here; missing or of another shape: {weight}");
  }
  EXPECT_THROW(ema.load_state_dict({}), Error);
  EXPECT_THROW(ExponentialMovingAverage(model, {.decay = 1.5}), Error);
}

}  // namespace
}  // namespace yoke::optim
