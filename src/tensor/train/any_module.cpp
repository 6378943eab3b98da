#include "yoke/train/any_module.hpp"

#include <optional>
#include <typeinfo>

#include "yoke/core/error.hpp"

namespace yoke::train {

std::shared_ptr<torch::nn::Module> AnyModule::clone_of(const torch::nn::Module& module,
                                                       at::Device device) {
  const std::string hint =
      "derive it from torch::nn::Cloneable of its own class, or use --parallel ddp";
  std::shared_ptr<torch::nn::Module> copy;
  try {
    copy = module.clone(device);
  } catch (const std::exception& error) {
    throw Error(Code::unsupported, "copy the model to " + device.str() + ": it cannot be cloned",
                hint)
        .caused_by(error);
  }
  if (const auto& made = *copy; typeid(made) != typeid(module)) {
    throw Error(Code::unsupported,
                "copy the model to " + device.str() + ": its clone() gives another class", hint);
  }
  return copy;
}

}  // namespace yoke::train
