#include "yoke/models/image_classifier.hpp"

#include <mutex>
#include <utility>

#include <ATen/Context.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::models {
namespace {

using NamedTensors = torch::OrderedDict<std::string, at::Tensor>;

void copy_values(const NamedTensors& from, const NamedTensors& to,
                 const std::optional<torch::Device>& device) {
  if (from.size() != to.size()) {
    throw Error(Code::internal,
                core::text("clone a module: it holds ", from.size(),
                           " tensors, a fresh one of its options ", to.size()),
                "do not register parameters or buffers on a model from outside");
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    const at::Tensor& value = from[i].value();
    at::Tensor target =
        to[i].value();  // a handle: set_data changes the tensor that the module holds
    const bool moves = device && value.device() != *device;
    target.set_data(moves ? value.detach().to(*device) : value.detach().clone());
    target.set_requires_grad(value.requires_grad());
  }
}

}  // namespace

std::vector<std::string> head_names(const ImageClassifier& model) {
  const std::string prefix = model.head_name() + ".";
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.key().starts_with(prefix)) names.push_back(parameter.key());
  }
  return names;
}

void replace_head(ImageClassifier& model, std::int64_t num_classes) {
  if (model.num_classes() != num_classes) model.replace_head(num_classes);
}

void copy_state(const torch::nn::Module& from, torch::nn::Module& to,
                const std::optional<torch::Device>& device) {
  const torch::NoGradGuard no_grad;
  copy_values(from.named_parameters(), to.named_parameters(), device);
  copy_values(from.named_buffers(), to.named_buffers(), device);
  // train() also sets what lies below, so parents come first and each child then has the last word.
  to.train(from.is_training());
  const auto sources = from.modules(/*include_self=*/false);
  const auto targets = to.modules(/*include_self=*/false);
  for (std::size_t i = 0; i < sources.size(); ++i) targets[i]->train(sources[i]->is_training());
}

KeepRandomState::KeepRandomState() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard lock(generator.mutex());
  state_ = generator.get_state();
}

KeepRandomState::~KeepRandomState() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state_);
}

}  // namespace yoke::models
