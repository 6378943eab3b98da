#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/stack/matrix.hpp"

namespace yoke::stack {

/// What an image says of the stack inside it, as labels yoke.stack.*: enough for a verdict before
/// it is pulled. What is not known has no label.
struct StackLabels {
  Fact torch{};                              ///< yoke.stack.torch: 2.9.1+cu128
  Fact torchvision{};                        ///< yoke.stack.torchvision
  Fact cuda{};                               ///< yoke.stack.cuda: 12.8.1, or none
  Fact cudnn{};                              ///< yoke.stack.cudnn
  Fact nccl{};                               ///< yoke.stack.nccl
  Fact python{};                             ///< yoke.stack.python: 3.12
  Fact glibc{};                              ///< yoke.stack.glibc: the image's own
  Fact driver{};                             ///< yoke.stack.driver: the oldest that serves it
  std::optional<StringAbi> abi{};            ///< yoke.stack.abi: old, new
  std::optional<std::vector<Arch>> archs{};  ///< yoke.stack.sm: "7.5 8.0 9.0"
  std::optional<bool> ptx{};                 ///< yoke.stack.ptx: true, false
};

[[nodiscard]] std::map<std::string, std::string> to_labels(const StackLabels& stack);

/// Errors: corrupt_data quoting a label whose value cannot be read.
[[nodiscard]] StackLabels from_labels(const std::map<std::string, std::string>& labels);

/// What the matrix knows of a build: for an image that is made of it.
[[nodiscard]] StackLabels labels_of(const Patch& patch, const Build& build);

}  // namespace yoke::stack
