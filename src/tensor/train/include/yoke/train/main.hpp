#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/models/registry.hpp"
#include "yoke/train/any_module.hpp"

namespace yoke::train {

/// Models to choose from by --model.
struct ModelSet {
  std::vector<std::string> names;
  std::function<AnyModule(std::string_view name, const models::InputOptions& input)> make;
};

/// Those of room models.
[[nodiscard]] ModelSet builtin_models();

/// `yoke train` as a whole program: flags, recipe, ranks, data, training, run folder, result
/// (docs/cmd/train.md).
///
/// Started bare it starts itself once per rank; started by a launcher it is one of the ranks.
/// Prints the result to standard output, all other words to standard error.
/// Returns: the exit code for `main`. Never throws.
int main(int argc, char** argv, const ModelSet& models);

/// The same for a module of one's own:
///
///   int main(int argc, char** argv) {
///     return yoke::train::main(argc, argv, [](const yoke::models::InputOptions& input) {
///       return std::make_shared<MyNet>(input.in_channels, input.num_classes);
///     });
///   }
///
/// `make_model` gives a ModuleHolder or a std::shared_ptr to a module whose forward takes images
/// [rows, channels, height, width] and gives scores [rows, num_classes]; freshly initialised, on
/// the CPU. It is called once per rank, under the common seed.
template <class MakeModel>
  requires std::invocable<MakeModel&, const models::InputOptions&>
int main(int argc, char** argv, MakeModel make_model, std::string name = "own") {
  return main(argc, argv,
              ModelSet{{std::move(name)},
                       [make_model](std::string_view, const models::InputOptions& input) {
                         return AnyModule(make_model(input));
                       }});
}

/// `yoke eval` as a whole program (docs/cmd/eval.md).
int eval_main(int argc, char** argv, const ModelSet& models);

}  // namespace yoke::train
