#include "yoke/optim/state_dict.hpp"

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/optim/adamw.hpp"
#include "yoke/optim/sgd.hpp"

namespace yoke::optim {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

at::Tensor layer(at::ScalarType dtype = torch::kFloat) {
  return torch::randn({4, 4}, dtype).set_requires_grad(true);
}

at::Tensor frozen_layer() { return torch::randn({4, 4}); }

void train(Optimizer& optimizer, int steps) {
  for (int k = 0; k < steps; ++k) {
    at::Tensor loss = torch::zeros({});
    for (const at::Tensor& value : optimizer.parameters()) loss = loss + value.pow(2).sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
}

const at::Tensor& slot(const OptimizerState& state, std::int64_t parameter,
                       const std::string& name) {
  for (const auto& [key, tensor] : state.state.at(parameter)) {
    if (key == name) return tensor;
  }
  throw std::out_of_range(name);
}

std::string refusal(Optimizer& optimizer, const OptimizerState& saved) {
  try {
    optimizer.load_state_dict(saved);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  return "";
}

// The optimizer of case B086 after three steps: A and B train, C is frozen.
OptimizerState trained_abc() {
  AdamW optimizer(Named{{"A", layer()}, {"B", layer()}, {"C", frozen_layer()}});
  train(optimizer, 3);
  return optimizer.state_dict();
}

TEST(StateDict, HasPythonsLayout) {
  AdamW optimizer(Named{{"A", layer()}, {"C", frozen_layer()}}, {.lr = 0.5});
  train(optimizer, 3);

  const OptimizerState state = optimizer.state_dict();

  ASSERT_EQ(state.state.size(), 1U);
  const std::vector<std::string> names{state.state.at(0)[0].first, state.state.at(0)[1].first,
                                       state.state.at(0)[2].first};
  EXPECT_EQ(names, (std::vector<std::string>{"step", "exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(slot(state, 0, "step").item<double>(), 3);
  EXPECT_EQ(slot(state, 0, "step").dim(), 0);
  ASSERT_EQ(state.param_groups.size(), 1U);
  EXPECT_EQ(state.param_groups[0].params, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(state.param_groups[0].param_names, (std::vector<std::string>{"A", "C"}));
  EXPECT_EQ(state.param_groups[0].options[0], (std::pair<std::string, OptionValue>{"lr", 0.5}));
}

TEST(StateDict, PlainSgdHasNoState) {
  SGD optimizer(std::vector{layer()}, {.lr = 0.1});
  train(optimizer, 1);

  EXPECT_TRUE(optimizer.state_dict().state.empty());
}

TEST(StateDict, LoadedOptimizerGoesOnToEqualBits) {
  for (const bool adam : {false, true}) {
    const at::Tensor straight = layer();
    const at::Tensor resumed = straight.detach().clone().set_requires_grad(true);
    const auto make = [&](const at::Tensor& value) -> std::unique_ptr<Optimizer> {
      if (adam) return std::make_unique<AdamW>(Named{{"A", value}}, AdamWOptions{.amsgrad = true});
      return std::make_unique<SGD>(Named{{"A", value}}, SGDOptions{.momentum = 0.9});
    };
    const auto first = make(straight);
    train(*first, 3);
    const auto second = make(resumed);
    {
      const torch::NoGradGuard no_grad;
      resumed.copy_(straight);
    }

    second->load_state_dict(first->state_dict());
    train(*first, 2);
    train(*second, 2);

    EXPECT_TRUE(straight.equal(resumed)) << (adam ? "AdamW" : "SGD");
  }
}

TEST(StateDict, SettingsAndRatesAreTakenOver) {
  SGD saved(std::vector{layer()},
            {.lr = 0.4, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  saved.set_lr_factor(0.5);
  SGD optimizer(std::vector{layer()}, {.lr = 1.0});

  optimizer.load_state_dict(saved.state_dict());

  EXPECT_EQ(optimizer.state_dict().param_groups[0].options,
            saved.state_dict().param_groups[0].options);
  EXPECT_DOUBLE_EQ(optimizer.lr(), 0.2);
  optimizer.set_lr_factor(1.0);
  EXPECT_DOUBLE_EQ(optimizer.lr(), 0.4);
}

TEST(StateDict, PythonsWholeNumbersNoneAndUnknownSettingsAreTaken) {
  SGD optimizer(std::vector{layer()}, {.lr = 1.0, .momentum = 0.5});
  OptimizerState python;
  python.param_groups.push_back({.options = {{"lr", std::int64_t{2}},
                                             {"momentum", std::int64_t{0}},
                                             {"fused", true},
                                             {"from_the_future", 1.0}},
                                 .params = {0},
                                 .param_names = {}});
  python.state[0] = {{"momentum_buffer", at::Tensor()}};

  optimizer.load_state_dict(python);

  EXPECT_DOUBLE_EQ(optimizer.lr(), 2.0);
  EXPECT_EQ(optimizer.state_dict().param_groups[0].options[1],
            (std::pair<std::string, OptionValue>{"momentum", 0.0}));
}

TEST(StateDict, B086FrozenHereThoughItTrainedIsRefusedByName) {
  AdamW optimizer(Named{{"A", layer()}, {"B", frozen_layer()}, {"C", frozen_layer()}});

  EXPECT_EQ(refusal(optimizer, trained_abc()),
            "load optimizer state: \"B\" has saved state and is frozen here");
}

TEST(StateDict, B086SwappedOrderIsMatchedByName) {
  const OptimizerState saved = trained_abc();
  AdamW optimizer(Named{{"B", layer()}, {"A", layer()}, {"C", frozen_layer()}});

  optimizer.load_state_dict(saved);

  const OptimizerState here = optimizer.state_dict();
  EXPECT_TRUE(slot(here, 0, "exp_avg").equal(slot(saved, 1, "exp_avg")));
  EXPECT_TRUE(slot(here, 1, "exp_avg").equal(slot(saved, 0, "exp_avg")));
  EXPECT_FALSE(slot(here, 0, "exp_avg").equal(slot(here, 1, "exp_avg")));
}

TEST(StateDict, B086OneMoreLayerIsRefusedByNameAndChangesNothing) {
  const at::Tensor a = layer();
  AdamW optimizer(Named{{"A", a}, {"B", layer()}, {"C", frozen_layer()}, {"D", layer()}});
  train(optimizer, 1);
  const at::Tensor before = slot(optimizer.state_dict(), 0, "exp_avg").clone();

  EXPECT_EQ(refusal(optimizer, trained_abc()),
            "load optimizer state: group 0 differs: only here {D}, only saved {}");
  EXPECT_TRUE(slot(optimizer.state_dict(), 0, "exp_avg").equal(before));
}

TEST(StateDict, B086MomentsGoToTheParametersDtypeAndTheStepStays) {
  AdamW optimizer(
      Named{{"A", layer(torch::kDouble)}, {"B", layer(torch::kDouble)}, {"C", frozen_layer()}});

  optimizer.load_state_dict(trained_abc());

  EXPECT_EQ(slot(optimizer.state_dict(), 0, "exp_avg").scalar_type(), torch::kDouble);
  EXPECT_EQ(slot(optimizer.state_dict(), 0, "step").scalar_type(), torch::kFloat);
  EXPECT_EQ(slot(optimizer.state_dict(), 0, "step").item<double>(), 3);
}

TEST(StateDict, WithoutNamesPositionsShapesAndCountsMustFit) {
  AdamW saved(std::vector{layer(), layer()});
  train(saved, 1);
  AdamW fewer(std::vector{layer()});
  AdamW wider(std::vector{layer(), torch::randn({4, 5}).set_requires_grad(true)});

  EXPECT_EQ(refusal(fewer, saved.state_dict()),
            "load optimizer state: group 0 has 1 parameters here, 2 saved");
  EXPECT_EQ(refusal(wider, saved.state_dict()),
            "load optimizer state: \"exp_avg\" of parameter 1 of group 0 has the shape [4, 4], the "
            "parameter here [4, 5]");
}

TEST(StateDict, GroupsAreFoundByTheNamesTheyHold) {
  AdamW saved(Named{{"A", layer()}}, {.lr = 0.1});
  saved.add_param_group(Named{{"B", layer()}}, {.lr = 0.2});
  AdamW swapped(Named{{"B", layer()}});
  swapped.add_param_group(Named{{"A", layer()}}, {});
  AdamW together(Named{{"A", layer()}, {"B", layer()}});

  swapped.load_state_dict(saved.state_dict());

  EXPECT_DOUBLE_EQ(swapped.lr(0), 0.2);
  EXPECT_DOUBLE_EQ(swapped.lr(1), 0.1);
  EXPECT_EQ(refusal(together, saved.state_dict()),
            "load optimizer state: 1 parameter groups here, 2 saved");
}

TEST(StateDict, StateOfAnotherKindIsRefused) {
  SGD optimizer(Named{{"A", layer()}, {"B", layer()}, {"C", frozen_layer()}});

  EXPECT_EQ(
      refusal(optimizer, trained_abc()),
      "load optimizer state: the saved state of \"A\" holds \"step\", which this optimizer does "
      "not have");
}

TEST(StateDict, ASettingOfAnotherTypeIsRefused) {
  SGD optimizer(std::vector{layer()});
  OptimizerState saved = optimizer.state_dict();
  saved.param_groups[0].options[0].second = true;

  EXPECT_EQ(refusal(optimizer, saved),
            "load optimizer state: the saved setting \"lr\" has another type than here");
}

}  // namespace
}  // namespace yoke::optim
