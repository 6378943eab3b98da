// The optimizers beside Python's torch.optim, and state handed over both ways.
#include <limits>
#include <memory>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "python_twin.hpp"
#include "yoke/optim/optim.hpp"

namespace yoke::optim {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

constexpr double kTolerance = 1e-6;  // of the norm: float32 sums in another order

struct Case {
  std::string python;  // class and settings
  std::function<std::unique_ptr<Optimizer>(const Named&)> make;
};

Case sgd(const std::string& settings, const SGDOptions& options) {
  return {"('SGD', {" + settings + "})",
          [options](const Named& named) { return std::make_unique<SGD>(named, options); }};
}

Case adamw(const std::string& settings, const AdamWOptions& options) {
  return {"('AdamW', {" + settings + "})",
          [options](const Named& named) { return std::make_unique<AdamW>(named, options); }};
}

std::vector<Case> cases() {
  return {
      sgd("'lr': 0.1", {.lr = 0.1}),
      sgd("'lr': 0.1, 'momentum': 0.9, 'weight_decay': 0.01",
          {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}),
      sgd("'lr': 0.1, 'momentum': 0.9, 'weight_decay': 0.01, 'nesterov': True",
          {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
      sgd("'lr': 0.1, 'momentum': 0.8, 'dampening': 0.3, 'maximize': True",
          {.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .maximize = true}),
      adamw("'lr': 0.1", {.lr = 0.1}),
      adamw("'lr': 0.01, 'betas': (0.8, 0.9), 'eps': 1e-3, 'weight_decay': 0.5, 'amsgrad': True",
            {.lr = 0.01, .betas = {0.8, 0.9}, .eps = 1e-3, .weight_decay = 0.5, .amsgrad = true}),
  };
}

// B gets its first gradient in the second step and none in the third.
struct BothSides {
  BothSides() {
    std::string text;
    for (const Case& one : all) text += one.python + "\n";
    python.give_text("cases", text);
    for (std::size_t n = 0; n < all.size(); ++n) {
      values.push_back({{"A", torch::randn({4, 3}).set_requires_grad(true)},
                        {"B", torch::randn({5}).set_requires_grad(true)}});
      for (const auto& [name, value] : values[n]) python.give(key(n, name), value.clone());
    }
    for (int k = 0; k < 4; ++k) {
      give_gradient("A", k, torch::randn({4, 3}));
      if (k == 1 || k == 3) give_gradient("B", k, torch::randn({5}));
    }
    for (std::size_t n = 0; n < all.size(); ++n) optimizers.push_back(all[n].make(values[n]));
  }

  static std::string key(std::size_t n, const std::string& rest) {
    return std::to_string(n) + "." + rest;
  }

  void give_gradient(const std::string& name, int k, const at::Tensor& gradient) {
    const std::string called = "gradient." + name + "." + std::to_string(k);
    gradients[called] = gradient;
    python.give(called, gradient);
  }

  void step(std::size_t n, int k) {
    for (auto& [name, value] : values[n]) {
      const auto found = gradients.find("gradient." + name + "." + std::to_string(k));
      value.mutable_grad() = found == gradients.end() ? at::Tensor() : found->second.clone();
    }
    optimizers[n]->step();
  }

  void expect_equal(std::size_t n, int k) {
    for (const auto& [name, value] : values[n]) {
      const std::string called = key(n, name + "." + std::to_string(k));
      EXPECT_LT(twin::relative_error(value, python[called]), kTolerance)
          << all[n].python << ' ' << called;
    }
  }

  std::vector<Case> all = cases();
  std::vector<Named> values;
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  std::map<std::string, at::Tensor> gradients;
  twin::Twin python;
};

std::string literal(const OptionValue& value) {
  std::ostringstream out;
  out.precision(17);
  if (const auto* flag = std::get_if<bool>(&value)) out << (*flag ? "True" : "False");
  if (const auto* whole = std::get_if<std::int64_t>(&value)) out << *whole;
  if (const auto* real = std::get_if<double>(&value)) out << *real;
  if (const auto* pair = std::get_if<std::pair<double, double>>(&value)) {
    out << '(' << pair->first << ", " << pair->second << ')';
  }
  if (std::holds_alternative<std::monostate>(value)) out << "None";
  return out.str();
}

// {"state": {0: ["step", ...]}, "param_groups": [{...}]}; the script puts the tensors in.
std::string literal(const OptimizerState& state) {
  std::ostringstream out;
  out << "{'state': {";
  for (const auto& [index, tensors] : state.state) {
    out << index << ": [";
    for (const auto& [name, tensor] : tensors) out << "'" << name << "', ";
    out << "], ";
  }
  out << "}, 'param_groups': [";
  for (const GroupState& group : state.param_groups) {
    out << '{';
    for (const auto& [name, value] : group.options) {
      out << "'" << name << "': " << literal(value) << ", ";
    }
    out << "'params': [";
    for (const std::int64_t index : group.params) out << index << ", ";
    out << "], 'param_names': [";
    for (const std::string& name : group.param_names) out << "'" << name << "', ";
    out << "]}, ";
  }
  out << "]}";
  return out.str();
}

TEST(TorchOptim, B082ValuesAfterEachStepAreEqual) {
  BothSides run;

  run.python.run("train");

  for (std::size_t n = 0; n < run.all.size(); ++n) {
    for (int k = 0; k < 4; ++k) {
      run.step(n, k);
      run.expect_equal(n, k);
    }
  }
}

TEST(TorchOptim, B082StateHasTheSameKeysShapesAndValues) {
  BothSides run;

  run.python.run("train");

  for (std::size_t n = 0; n < run.all.size(); ++n) {
    for (int k = 0; k < 3; ++k) run.step(n, k);
    const OptimizerState state = run.optimizers[n]->state_dict();
    for (const auto& [index, tensors] : state.state) {
      for (const auto& [name, tensor] : tensors) {
        const std::string called = BothSides::key(n, "state." + std::to_string(index) + "." + name);
        ASSERT_TRUE(run.python.has(called)) << called;
        EXPECT_EQ(tensor.sizes(), run.python[called].sizes()) << called;
        EXPECT_LT(twin::relative_error(tensor, run.python[called]), kTolerance) << called;
      }
    }
    std::set<std::string> settings{"params", "param_names"};
    for (const auto& [name, value] : state.param_groups[0].options) settings.insert(name);
    for (const std::string& name : run.python.lines("group." + std::to_string(n))) {
      EXPECT_EQ(settings.count(name), 1U) << run.all[n].python << " has the setting " << name;
    }
  }
}

TEST(TorchOptim, B082PythonsStateLoadsHereAndTheNextStepIsPythons) {
  BothSides run;
  run.python.run("train");

  for (std::size_t n = 0; n < run.all.size(); ++n) {
    OptimizerState saved = run.optimizers[n]->state_dict();  // the settings; Python's state below
    for (std::int64_t index = 0; index < 2; ++index) {
      for (const char* name :
           {"momentum_buffer", "step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
        const std::string called = BothSides::key(n, "state." + std::to_string(index) + "." + name);
        if (run.python.has(called)) saved.state[index].emplace_back(name, run.python[called]);
      }
    }
    for (auto& [name, value] : run.values[n]) {
      const torch::NoGradGuard no_grad;
      value.copy_(run.python[BothSides::key(n, name + ".2")]);
    }

    run.optimizers[n]->load_state_dict(saved);
    run.step(n, 3);

    run.expect_equal(n, 3);
  }
}

TEST(TorchOptim, B082OurStateLoadsInPythonAndTheNextStepIsOurs) {
  BothSides run;
  twin::Twin other;
  std::string text;
  for (std::size_t n = 0; n < run.all.size(); ++n) {
    for (int k = 0; k < 3; ++k) run.step(n, k);
    text += run.all[n].python + "\n";
    const OptimizerState state = run.optimizers[n]->state_dict();
    other.give_text("state." + std::to_string(n), literal(state));
    for (const auto& [index, tensors] : state.state) {
      for (const auto& [name, tensor] : tensors) {
        other.give(BothSides::key(n, "state." + std::to_string(index) + "." + name),
                   tensor.clone());
      }
    }
    for (const auto& [name, value] : run.values[n])
      other.give(BothSides::key(n, name), value.clone());
  }
  for (const auto& [name, gradient] : run.gradients) other.give(name, gradient);
  other.give_text("cases", text);

  other.run("go_on");

  for (std::size_t n = 0; n < run.all.size(); ++n) {
    run.step(n, 3);
    for (const auto& [name, value] : run.values[n]) {
      EXPECT_LT(twin::relative_error(value, other[BothSides::key(n, name + ".3")]), kTolerance)
          << run.all[n].python << ' ' << name;
    }
  }
}

TEST(TorchSchedules, FactorsAreThoseOfLrScheduler) {
  twin::Twin python;
  const std::map<std::string, ScheduleOptions> all{
      {"linear", {.shape = Shape::linear, .total_steps = 10, .end_factor = 0.2}},
      {"step", {.shape = Shape::step, .step_size = 6, .gamma = 0.5}},
      {"warm_cosine",
       {.shape = Shape::cosine,
        .total_steps = 20,
        .end_factor = 0.1,
        .warmup_steps = 4,
        .warmup_factor = 0.25}},
  };

  python.run("schedules");

  for (const auto& [name, options] : all) {
    for (std::int64_t k = 0; k < 20; ++k) {
      EXPECT_NEAR(Schedule(options).factor(k), python[name][k].item<double>(), 1e-12) << name << k;
    }
  }
}

TEST(TorchClip, NormsAndGradientsAreThoseOfClipGradNorm) {
  twin::Twin python;
  const std::vector<at::Tensor> gradients{torch::randn({4, 3}), torch::randn({7})};
  python.give("a", gradients[0]);
  python.give("b", gradients[1]);
  const std::vector<double> norm_types{1, 2, std::numeric_limits<double>::infinity()};

  python.run("clip");

  for (std::size_t n = 0; n < norm_types.size(); ++n) {
    std::vector<at::Tensor> values;
    for (const at::Tensor& gradient : gradients) {
      values.push_back(torch::zeros_like(gradient).set_requires_grad(true));
      values.back().mutable_grad() = gradient.clone();
    }
    const at::Tensor norm = clip_grad_norm_(values, 0.5, norm_types[n]);

    const std::string number = std::to_string(n);
    EXPECT_LT(twin::relative_error(norm, python["norm." + number]), kTolerance);
    EXPECT_LT(twin::relative_error(values[0].grad(), python["a." + number]), kTolerance);
    EXPECT_LT(twin::relative_error(values[1].grad(), python["b." + number]), kTolerance);
  }
}

TEST(TorchAverage, IsThatOfAveragedModel) {
  twin::Twin python;
  torch::nn::Linear model(2, 2);
  std::vector<std::pair<at::Tensor, at::Tensor>> all;
  for (int k = 0; k < 4; ++k) {
    all.emplace_back(torch::randn({2, 2}), torch::randn({2}));
    python.give("weight." + std::to_string(k), all.back().first);
    python.give("bias." + std::to_string(k), all.back().second);
  }
  const auto set = [&](std::size_t k) {
    const torch::NoGradGuard no_grad;
    model->weight.copy_(all[k].first);
    model->bias.copy_(all[k].second);
  };
  set(0);
  ExponentialMovingAverage ema(*model, {.decay = 0.9});

  python.run("average");
  for (const std::size_t k : {1U, 2U, 3U}) {
    set(k);
    ema.update();
  }

  const auto state = ema.state_dict();
  EXPECT_LT(twin::relative_error(state[0].second, python["weight"]), kTolerance);
  EXPECT_LT(twin::relative_error(state[1].second, python["bias"]), kTolerance);
}

}  // namespace
}  // namespace yoke::optim
