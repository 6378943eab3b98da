#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace yoke::models {

/// A module from images to one score (logit) per class; what `make` returns and the trainer trains.
///
///   std::shared_ptr<ImageClassifier> model = make("resnet18", {.num_classes = 10});
///   at::Tensor scores = model->forward(images);
///
/// Shapes: images [rows, channels, height, width] -> scores [rows, num_classes]; 0 rows are fine.
/// Threads: as torch::nn::Module: one forward at a time where it is in training mode.
class ImageClassifier : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;

  virtual at::Tensor forward(const at::Tensor& images) = 0;

  [[nodiscard]] virtual std::int64_t num_classes() const = 0;

  /// The layer that makes the scores, e.g. "fc": its parameters are "fc.weight" and "fc.bias".
  [[nodiscard]] virtual std::string head_name() const = 0;

  /// Puts a new, randomly initialised head with `num_classes` scores in the place of the old one,
  /// of its device and dtype. An optimizer or wrapper made before still holds the old one.
  virtual void replace_head(std::int64_t num_classes) = 0;
};

/// Names of the head's parameters, e.g. {"fc.weight", "fc.bias"}: what to leave out when weights
/// of a model with other classes are loaded.
[[nodiscard]] std::vector<std::string> head_names(const ImageClassifier& model);

/// As model.replace_head(num_classes); nothing where the number of classes is that already.
void replace_head(ImageClassifier& model, std::int64_t num_classes);

/// Copies parameters, buffers, requires_grad and each submodule's training switch from one module
/// to another of the same build. The values go to `device`, or stay where they are.
void copy_state(const torch::nn::Module& from, torch::nn::Module& to,
                const std::optional<torch::Device>& device);

/// Puts the CPU generator back as it was: a clone's random initialisation is thrown away and must
/// not change what the user draws next.
class KeepRandomState {
 public:
  KeepRandomState();
  ~KeepRandomState();
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  at::Tensor state_;
};

/// Makes `Derived` cloneable: it has a public member `options` and a constructor that takes it.
/// (torch::nn::Cloneable derives from Module directly, so it cannot stand below ImageClassifier;
/// and its clones forget requires_grad and evaluation mode, which these keep.)
template <class Derived>
class CloneableClassifier : public ImageClassifier {
 public:
  using ImageClassifier::ImageClassifier;

  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override {
    const KeepRandomState keep;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this).options);
    copy_state(*this, *copy, device);
    return copy;
  }

 private:
  // Called by torch::nn::Cloneable where this is a member of a user's module.
  void clone_(torch::nn::Module& other, const std::optional<torch::Device>& device) final {
    const auto copy = std::static_pointer_cast<Derived>(other.clone(device));
    static_cast<Derived&>(*this) = *copy;
  }
};

}  // namespace yoke::models
