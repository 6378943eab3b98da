#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "yoke/parallel/module_access.hpp"

namespace yoke::train {

/// A module with forward(Tensor) -> Tensor whose type is forgotten, so that the trainer is compiled
/// once.
///
///   AnyModule any(models::resnet18(10));            // a ModuleHolder
///   AnyModule mine(std::make_shared<MyNet>());      // or a pointer to any torch::nn::Module
///
/// Owns: the module together with whoever gave it. A value; copies share the module.
class AnyModule {
 public:
  template <class Model>
    requires(!std::same_as<std::remove_cvref_t<Model>, AnyModule>)
  AnyModule(Model model) : AnyModule(Pointer{}, shared(std::move(model))) {}

  [[nodiscard]] at::Tensor forward(const at::Tensor& input) const { return forward_(input); }
  [[nodiscard]] torch::nn::Module& operator*() const noexcept { return *module_; }
  [[nodiscard]] torch::nn::Module* operator->() const noexcept { return module_.get(); }
  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& pointer() const noexcept {
    return module_;
  }

  /// Another module of the same class and values on `device`.
  /// Errors: unsupported for a class that torch cannot clone.
  [[nodiscard]] AnyModule cloned(at::Device device) const { return clone_(device); }

 private:
  struct Pointer {};

  template <class M>
  AnyModule(Pointer, std::shared_ptr<M> module)
      : module_(module),
        forward_(
            [module](const at::Tensor& input) -> at::Tensor { return module->forward(input); }),
        clone_([module](at::Device device) {
          return AnyModule(Pointer{}, std::dynamic_pointer_cast<M>(clone_of(*module, device)));
        }) {}

  template <class M>
  static std::shared_ptr<M> shared(std::shared_ptr<M> module) {
    return module;
  }
  template <class Holder>
    requires requires(Holder holder) { holder.ptr(); }
  static auto shared(Holder holder) {
    return holder.ptr();
  }

  // Never null: what cannot be cloned to the same class is refused.
  static std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& module,
                                                     at::Device device);

  std::shared_ptr<torch::nn::Module> module_;
  std::function<at::Tensor(const at::Tensor&)> forward_;
  std::function<AnyModule(at::Device)> clone_;
};

}  // namespace yoke::train

namespace yoke::parallel {

template <>
struct ModuleAccess<train::AnyModule> {
  static NamedTensors parameters(train::AnyModule& model) {
    NamedTensors named;
    for (const auto& item : model->named_parameters()) named.emplace_back(item.key(), item.value());
    return named;
  }
  static NamedTensors buffers(train::AnyModule& model) {
    NamedTensors named;
    for (const auto& item : model->named_buffers()) named.emplace_back(item.key(), item.value());
    return named;
  }
  static bool training(train::AnyModule& model) { return model->is_training(); }
  static void train(train::AnyModule& model, bool on) { model->train(on); }
  static at::Tensor forward(train::AnyModule& model, const at::Tensor& input) {
    return model.forward(input);
  }
};

}  // namespace yoke::parallel
