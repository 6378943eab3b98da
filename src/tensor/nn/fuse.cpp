#include "yoke/nn/fuse.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/nn/modules/batchnorm.h>

#include "norm.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/kernels/kernels.hpp"
#include "yoke/nn/batch_norm.hpp"
#include "yoke/nn/cast_together.hpp"
#include "yoke/nn/pooling.hpp"
#include "yoke/nn/stem.hpp"

namespace yoke::nn {
namespace {

namespace jit = torch::jit;
using core::text;
using jit::Node;
using jit::Value;

const auto kNorm = c10::Symbol::fromQualString("yoke::norm");
const auto kNormTwice = c10::Symbol::fromQualString("yoke::norm_twice");
const auto kConvolution = c10::Symbol::fromQualString("yoke::convolution");
const auto kMaxPool = c10::Symbol::fromQualString("yoke::max_pool");
const auto kChannelMean = c10::Symbol::fromQualString("yoke::channel_mean");

// x, residual, weight, bias, running mean, running var, momentum, eps, relu -> y, y
std::pair<at::Tensor, at::Tensor> norm_of(jit::Stack& stack) {
  const bool relu = jit::pop(stack).toBool();
  const double eps = jit::pop(stack).toDouble();
  const double momentum = jit::pop(stack).toDouble();
  NormTensors tensors;
  tensors.running_var = jit::pop(stack).toTensor();
  tensors.running_mean = jit::pop(stack).toTensor();
  tensors.bias = jit::pop(stack).toTensor();
  tensors.weight = jit::pop(stack).toTensor();
  const auto residual = jit::pop(stack).toOptional<at::Tensor>();
  const at::Tensor x = jit::pop(stack).toTensor();
  return norm_twice(x, residual.value_or(at::Tensor()), tensors,
                    {.momentum = momentum, .eps = eps, .relu = relu});
}

// x, weight, bias, stride, padding, dilation, groups -> y
void convolution(jit::Stack& stack) {
  const std::int64_t groups = jit::pop(stack).toInt();
  const std::vector<std::int64_t> dilation = jit::pop(stack).toIntVector();
  const std::vector<std::int64_t> padding = jit::pop(stack).toIntVector();
  const std::vector<std::int64_t> stride = jit::pop(stack).toIntVector();
  const auto bias = jit::pop(stack).toOptional<at::Tensor>();
  const at::Tensor weight = jit::pop(stack).toTensor();
  const at::Tensor x = jit::pop(stack).toTensor();
  const auto all = [](const std::vector<std::int64_t>& values, std::int64_t value) {
    return std::ranges::all_of(values, [&](std::int64_t one) { return one == value; });
  };
  const bool stem = !bias && weight.dim() == 4 && weight.size(2) == 7 && weight.size(3) == 7 &&
                    all(stride, 2) && all(padding, 3) && all(dilation, 1) && groups == 1;
  if (stem) {
    jit::push(stack, stem_convolution(x, weight));
  } else {
    jit::push(stack, at::convolution(x, weight, bias, stride, padding, dilation,
                                     /*transposed=*/false, /*output_padding=*/{0, 0}, groups));
  }
}

const jit::RegisterOperators operators(
    {jit::Operator(
         "yoke::norm(Tensor x, Tensor? residual, Tensor weight, Tensor bias, Tensor(a!) "
         "mean, Tensor(b!) var, float momentum, float eps, bool relu) -> Tensor",
         [](jit::Stack& stack) { jit::push(stack, norm_of(stack).first); },
         c10::AliasAnalysisKind::FROM_SCHEMA),
     jit::Operator(
         "yoke::norm_twice(Tensor x, Tensor? residual, Tensor weight, Tensor bias, "
         "Tensor(a!) mean, Tensor(b!) var, float momentum, float eps, bool relu) -> "
         "(Tensor, Tensor)",
         [](jit::Stack& stack) {
           const auto [main, again] = norm_of(stack);
           jit::push(stack, main, again);
         },
         c10::AliasAnalysisKind::FROM_SCHEMA),
     jit::Operator("yoke::convolution(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] "
                   "padding, int[] dilation, int groups) -> Tensor",
                   convolution, c10::AliasAnalysisKind::FROM_SCHEMA),
     jit::Operator(
         "yoke::max_pool(Tensor x, int kernel, int stride, int padding) -> Tensor",
         [](jit::Stack& stack) {
           const std::int64_t padding = jit::pop(stack).toInt();
           const std::int64_t stride = jit::pop(stack).toInt();
           const std::int64_t kernel = jit::pop(stack).toInt();
           const at::Tensor x = jit::pop(stack).toTensor();
           jit::push(stack, max_pool2d(x, MaxPool2dOptions{kernel, stride, padding}));
         },
         c10::AliasAnalysisKind::FROM_SCHEMA),
     jit::Operator(
         "yoke::channel_mean(Tensor x) -> Tensor",
         [](jit::Stack& stack) {
           const at::Tensor x = jit::pop(stack).toTensor();
           jit::push(stack, global_avg_pool(x).unsqueeze(-1).unsqueeze(-1));
         },
         c10::AliasAnalysisKind::FROM_SCHEMA)});

bool is(const Node* node, const char* name) {
  return node->kind() == c10::Symbol::aten(name) ||
         node->kind() == c10::Symbol::aten(std::string(name) + "_");
}

std::optional<std::vector<std::int64_t>> constant_ints(Value* value) {
  if (const auto constant = jit::toIValue(value)) {
    if (constant->isIntList()) return constant->toIntVector();
    return std::nullopt;
  }
  if (value->node()->kind() != c10::prim::ListConstruct) return std::nullopt;
  std::vector<std::int64_t> out;
  for (Value* input : value->node()->inputs()) {
    const auto constant = jit::toIValue(input);
    if (!constant || !constant->isInt()) return std::nullopt;
    out.push_back(constant->toInt());
  }
  return out;
}

bool is_true(Value* value) {
  const auto constant = jit::toIValue(value);
  return constant && constant->isBool() && constant->toBool();
}

/// One traced forward, rewritten.
class FusedGraph {
 public:
  FusedGraph(torch::nn::Module& module, const Fused::Forward& forward, const at::Tensor& example)
      : graph_((require_traceable(module), trace(module, forward, example))) {
    take_tensors_from(module);
    rewrite();
    take_counters_from(module);
    for (Input& input : inputs_) {
      input.convolution = std::ranges::all_of(input.value->uses(), [](const jit::Use& use) {
        return use.user->kind() == kConvolution && use.offset == 1;
      });
    }
    jit::EliminateDeadCode(graph_);
    code_ = jit::Code(graph_, "fused forward");
  }

  [[nodiscard]] const FuseReport& report() const noexcept { return report_; }

  at::Tensor run(const at::Tensor& x) {
    std::vector<at::Tensor> weights;
    for (const Input& input : inputs_) {
      if (input.convolution) weights.push_back(input.tensor);
    }
    const CastTogether casts(weights);
    jit::Stack stack{x};
    for (const Input& input : inputs_)
      stack.emplace_back(input.convolution ? cast_of(input.tensor) : input.tensor);
    jit::InterpreterState(code_).run(stack);
    {
      const at::NoGradGuard no_grad;
      for (at::Tensor& counter : counters_) counter.add_(1);
    }
    return jit::pop(stack).toTensor();
  }

 private:
  struct Input {
    at::Tensor tensor;
    Value* value = nullptr;
    bool convolution = false;  // used as weight of convolutions alone
  };

  // What forward does besides operations on tensors is not in a trace.
  static void require_traceable(const torch::nn::Module& module) {
    for (const auto& item : module.named_modules("", /*include_self=*/true)) {
      const auto* norm = item.value()->as<torch::nn::BatchNorm2dImpl>();
      if (norm != nullptr && !norm->options.momentum()) {
        throw Error(Code::unsupported,
                    core::text("\"", item.key(), "\" keeps cumulative averages (no momentum)"));
      }
      const auto* ours = item.value()->as<BatchNorm2dImpl>();
      if (ours != nullptr && ours->group != nullptr) {
        throw Error(Code::unsupported, core::text("\"", item.key(), "\" meets other ranks"));
      }
    }
  }

  // Parameters take no gradients meanwhile: the tracer would refuse them as constants. Buffers are
  // put back.
  static std::shared_ptr<jit::Graph> trace(torch::nn::Module& module, const Fused::Forward& forward,
                                           const at::Tensor& example) {
    struct Kept {
      std::vector<at::Tensor> trained;
      std::vector<std::pair<at::Tensor, at::Tensor>> buffers;
      bool kernels_on = kernels::is_enabled();
      ~Kept() {
        kernels::enable(kernels_on);
        const at::NoGradGuard no_grad;
        for (at::Tensor& parameter : trained) parameter.set_requires_grad(true);
        for (auto& [buffer, value] : buffers) buffer.copy_(value);
      }
    } kept;
    kernels::enable(false);  // the tracer sees torch's operations only
    const at::NoGradGuard no_grad;
    for (const at::Tensor& buffer : module.buffers())
      kept.buffers.emplace_back(buffer, buffer.clone());
    for (at::Tensor& parameter : module.parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.set_requires_grad(false);
      kept.trained.push_back(parameter);
    }
    const auto traced = jit::tracer::trace(
        {example.detach()},
        [&](const jit::Stack& inputs) { return jit::Stack{forward(inputs[0].toTensor())}; },
        [](const at::Tensor&) { return std::string(); }, /*strict=*/false);
    return traced.first->graph;
  }

  // Constants that are the module's own tensors become inputs, so that each run takes them as they
  // are then.
  void take_tensors_from(const torch::nn::Module& module) {
    std::unordered_map<const void*, at::Tensor> known;
    for (const at::Tensor& tensor : module.parameters()) known[tensor.data_ptr()] = tensor;
    for (const at::Tensor& tensor : module.buffers()) known[tensor.data_ptr()] = tensor;
    std::unordered_map<const void*, Value*> made;
    for (Node* node : graph_->nodes()) {
      if (node->kind() != c10::prim::Constant || node->outputs().size() != 1) continue;
      const auto constant = jit::toIValue(node->output());
      if (!constant || !constant->isTensor() || !constant->toTensor().defined()) continue;
      const auto found = known.find(constant->toTensor().data_ptr());
      if (found == known.end() || found->second.sizes() != constant->toTensor().sizes()) continue;
      Value*& input = made[found->first];
      if (input == nullptr) {
        input = graph_->addInput();
        input->setType(c10::TensorType::get());
        inputs_.push_back({found->second, input});
      }
      node->output()->replaceAllUsesWith(input);
    }
  }

  // A norm counts its batches by an addition whose result nothing uses; the tracer drops it.
  void take_counters_from(const torch::nn::Module& module) {
    const std::string name = "num_batches_tracked";
    std::unordered_map<std::string, at::Tensor> parameters;
    for (const auto& item : module.named_parameters()) parameters[item.key()] = item.value();
    for (const auto& item : module.named_buffers()) {
      if (!item.key().ends_with(name)) continue;
      const std::string path = item.key().substr(0, item.key().size() - name.size());
      const auto weight = parameters.find(path + "weight");
      const bool counted =
          weight != parameters.end() && std::ranges::any_of(normed_, [&](const at::Tensor& one) {
            return one.is_same(weight->second);
          });
      if (counted) counters_.push_back(item.value());
    }
  }

  void rewrite() {
    std::vector<Node*> nodes;  // none of which goes before its turn
    for (Node* node : graph_->nodes()) {
      if (is(node, "batch_norm") || is(node, "_convolution") || is(node, "max_pool2d") ||
          is(node, "adaptive_avg_pool2d"))
        nodes.push_back(node);
    }
    for (Node* node : nodes) {
      if (is(node, "batch_norm")) rewrite_norm(node);
      if (is(node, "_convolution")) rewrite_convolution(node);
      if (is(node, "max_pool2d")) rewrite_max_pool(node);
      if (is(node, "adaptive_avg_pool2d")) rewrite_mean(node);
    }
  }

  // The only node that uses the value; null where there are others.
  static Node* only_user(Value* value) {
    return value->uses().size() == 1 ? value->uses()[0].user : nullptr;
  }

  // Sizes and dtype as they were traced: the kernel neither expands nor promotes.
  static bool same_type(const Value* a, const Value* b) {
    const auto left = a->type()->cast<c10::TensorType>();
    const auto right = b->type()->cast<c10::TensorType>();
    if (left == nullptr || right == nullptr) return false;
    const auto sizes = left->sizes().concrete_sizes();
    return sizes && sizes == right->sizes().concrete_sizes() && left->scalarType() &&
           left->scalarType() == right->scalarType();
  }

  static bool adds_plainly(const Node* node) {
    const auto factor = jit::toIValue(node->input(2));
    return factor && factor->isInt() && factor->toInt() == 1 &&
           node->input(0)->type()->isSubtypeOf(*c10::TensorType::get()) &&
           node->input(1)->type()->isSubtypeOf(*c10::TensorType::get());
  }

  // aten::batch_norm(x, weight, bias, mean, var, training, momentum, eps, cudnn)
  void rewrite_norm(Node* norm) {
    for (const std::size_t place : {1U, 2U, 3U, 4U}) {
      if (!is_input(norm->input(place))) {
        report_.left.emplace_back("a batch norm without weight, bias or running statistics");
        return;
      }
    }
    if (!is_true(norm->input(5))) {
      report_.left.emplace_back("a batch norm in evaluation mode");
      return;
    }
    for (const Input& input : inputs_) {
      if (input.value == norm->input(1)) normed_.push_back(input.tensor);
    }
    Node* last = norm;
    Value* residual = nullptr;
    bool relu = false;
    Node* user = only_user(norm->output());
    if (user != nullptr && is(user, "add") && adds_plainly(user)) {
      Node* behind = only_user(user->output());
      Value* other = user->input(user->input(0) == norm->output() ? 1 : 0);
      // An add whose other side is this norm too, or that comes before that side exists.
      if (behind != nullptr && is(behind, "relu") && other != norm->output() &&
          same_type(other, norm->output())) {
        residual = other;
        last = behind;
        relu = true;
      }
    } else if (user != nullptr && is(user, "relu")) {
      last = user;
      relu = true;
    }
    ++(residual != nullptr ? report_.norms_add_relu : relu ? report_.norms_relu : report_.norms);

    const bool twice = residual != nullptr && last->output()->uses().size() == 2;
    const jit::WithInsertPoint here(last);
    Value* other = residual != nullptr ? residual : graph_->insertConstant(c10::IValue());
    Node* made = graph_->create(
        twice ? kNormTwice : kNorm,
        {norm->input(0), other, norm->input(1), norm->input(2), norm->input(3), norm->input(4),
         norm->input(6), norm->input(7), graph_->insertConstant(relu)},
        twice ? 2 : 1);
    for (Value* output : made->outputs()) output->setType(last->output()->type());
    graph_->insertNode(made);
    if (twice) {
      const auto second = last->output()->uses()[1];
      second.user->replaceInput(second.offset, made->output(1));
    }
    last->output()->replaceAllUsesWith(made->output(0));
    // From the end, so that none is used when it goes.
    for (Node* gone = last; gone != nullptr;) {
      Node* before = gone == norm ? nullptr : residual != nullptr && gone == last ? user : norm;
      gone->destroy();
      gone = before;
    }
  }

  // aten::_convolution(x, weight, bias, stride, padding, dilation, transposed, ...)
  void rewrite_convolution(Node* node) {
    const auto stride = constant_ints(node->input(3));
    if (!stride || stride->size() != 2 || is_true(node->input(6))) return;
    const jit::WithInsertPoint here(node);
    Node* made = graph_->create(kConvolution,
                                {node->input(0), node->input(1), node->input(2), node->input(3),
                                 node->input(4), node->input(5), node->input(8)});
    made->output()->setType(node->output()->type());
    graph_->insertNode(made);
    node->output()->replaceAllUsesWith(made->output());
    ++report_.convolutions;
    node->destroy();
  }

  // aten::max_pool2d(x, kernel, stride, padding, dilation, ceil_mode)
  void rewrite_max_pool(Node* node) {
    std::vector<std::int64_t> window;
    for (const std::size_t place : {1U, 2U, 3U}) {
      const auto values = constant_ints(node->input(place));
      const bool square = values && !values->empty() && values->front() == values->back();
      if (!square) return;
      window.push_back(values->front());
    }
    const auto dilation = constant_ints(node->input(4));
    if (!dilation || dilation->front() != 1 || dilation->back() != 1 || is_true(node->input(5)))
      return;
    replace(node, kMaxPool, window);
  }

  // aten::adaptive_avg_pool2d(x, size)
  void rewrite_mean(Node* node) {
    const auto size = constant_ints(node->input(1));
    if (size && size->front() == 1 && size->back() == 1) replace(node, kChannelMean, {});
  }

  void replace(Node* node, c10::Symbol kind, const std::vector<std::int64_t>& numbers) {
    const jit::WithInsertPoint here(node);
    std::vector<Value*> inputs{node->input(0)};
    for (const std::int64_t number : numbers) inputs.push_back(graph_->insertConstant(number));
    Node* made = graph_->create(kind, inputs);
    made->output()->setType(node->output()->type());
    graph_->insertNode(made);
    node->output()->replaceAllUsesWith(made->output());
    node->destroy();
    ++report_.pools;
  }

  [[nodiscard]] bool is_input(const Value* value) const {
    return std::ranges::any_of(inputs_, [&](const Input& one) { return one.value == value; });
  }

  std::shared_ptr<jit::Graph> graph_;
  std::vector<Input> inputs_;
  std::vector<at::Tensor> normed_;    // weights of the norms that are rewritten
  std::vector<at::Tensor> counters_;  // their num_batches_tracked
  jit::Code code_;
  FuseReport report_;
};

}  // namespace

std::string FuseReport::text() const {
  if (!obstacle.empty()) return "fused nothing: " + obstacle;
  std::string out = core::text("fused ", norms_add_relu, " norms with add and ReLU, ", norms_relu,
                               " with ReLU, ", norms, " alone, ", pools, " poolings; ",
                               convolutions, " convolutions cast together");
  if (!left.empty()) out += core::text("; left: ", core::joined(left, ", "));
  return out;
}

struct Fused::State {
  std::shared_ptr<torch::nn::Module> module;
  Forward forward;
  FuseReport report{};
  std::map<std::vector<std::int64_t>, std::unique_ptr<FusedGraph>> graphs{};  // by shape
  bool plain = false;  // nothing can be fused

  // Shape and types, and which layers train: all that a trace depends on.
  [[nodiscard]] std::vector<std::int64_t> key_of(const at::Tensor& x) const {
    std::vector<std::int64_t> key = x.sizes().vec();
    key.push_back(static_cast<std::int64_t>(x.scalar_type()));
    const bool low = at::autocast::is_autocast_enabled(at::kCUDA);
    key.push_back(low ? static_cast<std::int64_t>(at::autocast::get_autocast_dtype(at::kCUDA))
                      : -1);
    for (const auto& one : module->modules()) key.push_back(one->is_training() ? 1 : 0);
    return key;
  }

  // Null: runs as it is.
  FusedGraph* graph_for(const at::Tensor& x) {
    constexpr std::size_t kMostShapes = 8;
    if (plain || !module->is_training()) return nullptr;
    const std::vector<std::int64_t> shape = key_of(x);
    const auto found = graphs.find(shape);
    if (found != graphs.end()) return found->second.get();
    if (graphs.size() == kMostShapes) graphs.erase(graphs.begin());
    try {
      auto made = std::make_unique<FusedGraph>(*module, forward, x);
      return graphs.emplace(shape, std::move(made)).first->second.get();
    } catch (const std::exception& error) {
      jit::tracer::abandon();
      plain = true;
      report.obstacle = std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
      core::say(core::Level::warning,
                core::text("fuse: the model's forward runs as it is: ", report.obstacle));
    }
    return nullptr;
  }
};

Fused::Fused(std::shared_ptr<torch::nn::Module> module, Forward forward, const at::Tensor& example)
    : state_(new State{.module = std::move(module), .forward = std::move(forward)}) {
  if (!state_->module->is_training()) {
    state_->report.obstacle = "the model is in evaluation mode";
    return;
  }
  if (const FusedGraph* graph = state_->graph_for(example)) state_->report = graph->report();
}

Fused::Fused(Fused&&) noexcept = default;
Fused& Fused::operator=(Fused&&) noexcept = default;
Fused::~Fused() = default;

at::Tensor Fused::operator()(const at::Tensor& x) {
  FusedGraph* graph = state_->graph_for(x);
  return graph == nullptr ? state_->forward(x) : graph->run(x);
}

const FuseReport& Fused::report() const noexcept { return state_->report; }

}  // namespace yoke::nn
