// A module of one's own with all of `yoke train`'s flags: ranks, data, recipes, run folder,
// progress.
//
//   ./own_model --data fashion-mnist --epochs 2 --ranks 2 --out runs/own

#include <yoke/yoke.hpp>

#include <memory>

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

struct TwoLayers : torch::nn::Module {
  explicit TwoLayers(const yoke::models::InputOptions& input)
      : first(register_module(
            "first",
            torch::nn::Linear(input.in_channels * input.image_size * input.image_size, 64))),
        second(register_module("second", torch::nn::Linear(64, input.num_classes))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    return second(first(images.flatten(1)).relu());
  }

  torch::nn::Linear first, second;
};

int main(int argc, char** argv) {
  return yoke::train::main(argc, argv, [](const yoke::models::InputOptions& input) {
    return std::make_shared<TwoLayers>(input);
  });
}
