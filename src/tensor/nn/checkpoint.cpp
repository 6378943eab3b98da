#include "yoke/nn/checkpoint.hpp"

#include <algorithm>

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include "surroundings.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::nn {
namespace {

using Run = std::function<Tensors(const Tensors&)>;
using torch::autograd::AutogradContext;

// The function with all that its second run needs; autograd holds it as an opaque value.
struct Recipe : torch::CustomClassHolder {
  Recipe(Run chosen, Surroundings found, std::size_t count)
      : run(std::move(chosen)), surroundings(std::move(found)), inputs(count) {}

  Run run;
  Surroundings surroundings;
  std::size_t inputs;  // without the stand-in
};

// Autocast remembers the casts of weights. A cast made by the first run has no graph, so whoever
// met it later in the same region would get no gradient; one remembered by others belongs to
// another graph.
class WithoutAutocastCache {
 public:
  WithoutAutocastCache() { at::autocast::set_autocast_cache_enabled(false); }
  ~WithoutAutocastCache() { at::autocast::set_autocast_cache_enabled(before_); }
  WithoutAutocastCache(const WithoutAutocastCache&) = delete;
  WithoutAutocastCache& operator=(const WithoutAutocastCache&) = delete;

 private:
  bool before_ = at::autocast::is_autocast_cache_enabled();
};

void require_plain_backward() {
  const bool grad = !torch::autograd::Engine::get_default_engine().is_checkpoint_valid();
  if (!grad && !at::GradMode::is_enabled()) return;
  throw Error(
      Code::unsupported,
      grad ? "backward through nn::checkpoint: called by torch::autograd::grad, or with inputs"
           : "backward through nn::checkpoint: a graph of the gradients was asked for",
      "call loss.backward() without inputs and create_graph, or take the checkpoint away");
}

// Runs the recipe again, on leaves of its own, so that the graph ends at them.
Tensors rerun(const Recipe& recipe, const Tensors& leaves, std::size_t outputs) {
  const Within same_surroundings(recipe.surroundings);
  const WithoutAutocastCache no_cache;
  const at::AutoGradMode with_grad(true);
  Tensors again = recipe.run(leaves);
  if (again.size() != outputs) {
    throw Error(Code::invalid_argument,
                core::text("backward through nn::checkpoint: the function gave ", outputs,
                           " tensors at first and ", again.size(), " when run again"),
                "make it depend on its inputs only");
  }
  return again;
}

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static Tensors forward(AutogradContext* ctx, const c10::intrusive_ptr<Recipe>& recipe,
                         at::TensorList inputs) {
    ctx->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    ctx->save_for_backward(inputs.vec());
    ctx->set_materialize_grads(false);
    const WithoutAutocastCache no_cache;
    Tensors outputs =
        recipe->run({inputs.begin(), inputs.begin() + std::ptrdiff_t(recipe->inputs)});
    Tensors whole_numbers;
    for (const at::Tensor& output : outputs) {
      if (!torch::autograd::isDifferentiableType(output.scalar_type()))
        whole_numbers.push_back(output);
    }
    ctx->mark_non_differentiable(whole_numbers);
    return outputs;
  }

  static Tensors backward(AutogradContext* ctx, const Tensors& gradients) {
    require_plain_backward();
    const auto capsule = ctx->saved_data["recipe"].toCapsule();
    const auto& recipe = static_cast<const Recipe&>(*capsule);
    Tensors leaves;
    for (const at::Tensor& input : ctx->get_saved_variables()) {
      leaves.push_back(input.detach().set_requires_grad(input.requires_grad()));
    }
    const Tensors inputs = at::TensorList(leaves).slice(0, recipe.inputs).vec();
    const Tensors outputs = rerun(recipe, inputs, gradients.size());
    Tensors roots;
    Tensors root_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      root_gradients.push_back(gradients[i]);
    }
    if (!roots.empty()) torch::autograd::backward(roots, root_gradients);
    Tensors results{at::Tensor()};  // of the recipe
    for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
    return results;
  }
};

}  // namespace

Tensors checkpoint_list(std::function<Tensors(const Tensors&)> fn, Tensors inputs,
                        const CheckpointOptions& options) {
  if (!at::GradMode::is_enabled()) return fn(inputs);
  auto recipe = c10::make_intrusive<Recipe>(
      std::move(fn), Surroundings::now(inputs, options.preserve_rng_state), inputs.size());
  // Autograd calls backward only for inputs that require a gradient; where none does, the
  // parameters inside `fn` still may, so a stand-in of no elements asks for them.
  const bool any =
      std::ranges::any_of(inputs, [](const auto& input) { return input.requires_grad(); });
  if (!any) inputs.push_back(at::empty({0}).set_requires_grad(true));
  // A TensorList, since apply() takes a vector for something that is no tensor.
  return Checkpoint::apply(recipe, at::TensorList(inputs));
}

}  // namespace yoke::nn
