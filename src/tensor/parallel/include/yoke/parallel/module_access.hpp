#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include "yoke/parallel/gradient_engine.hpp"

namespace torch::jit {
struct Module;
}  // namespace torch::jit

namespace yoke::parallel {

/// How wrappers reach into what they wrap: a torch::nn module (a ModuleHolder such as
/// models::ResNet, a shared_ptr to a module, both share ownership with the user) or a
/// torch::jit::Module (a handle; give it as jit::Module).
template <class Model>
struct ModuleAccess {
  static torch::nn::Module& module(Model& model) { return *model; }

  static NamedTensors parameters(Model& model) {
    NamedTensors named;
    for (const auto& item : module(model).named_parameters())
      named.emplace_back(item.key(), item.value());
    return named;
  }
  static NamedTensors buffers(Model& model) {
    NamedTensors named;
    for (const auto& item : module(model).named_buffers())
      named.emplace_back(item.key(), item.value());
    return named;
  }
  static bool training(Model& model) { return module(model).is_training(); }
  static void train(Model& model, bool on) { module(model).train(on); }

  template <class... Args>
  static decltype(auto) forward(Model& model, Args&&... args) {
    return (*model).forward(std::forward<Args>(args)...);
  }
};

template <class Model>
  requires std::is_same_v<Model, torch::jit::Module>
struct ModuleAccess<Model> {
  static NamedTensors parameters(Model& model) {
    NamedTensors named;
    for (const auto& item : model.named_parameters()) named.emplace_back(item.name, item.value);
    return named;
  }
  static NamedTensors buffers(Model& model) {
    NamedTensors named;
    for (const auto& item : model.named_buffers()) named.emplace_back(item.name, item.value);
    return named;
  }
  static bool training(Model& model) { return model.is_training(); }
  static void train(Model& model, bool on) { model.train(on); }

  template <class... Args>
  static c10::IValue forward(Model& model, Args&&... args) {
    std::vector<c10::IValue> inputs;
    (inputs.emplace_back(std::forward<Args>(args)), ...);
    return model.forward(std::move(inputs));
  }
};

}  // namespace yoke::parallel
