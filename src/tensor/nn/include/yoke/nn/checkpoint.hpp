#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace yoke::nn {

struct CheckpointOptions {
  bool preserve_rng_state =
      true;  ///< draw the same random numbers again, so that dropout is the same
};

using Tensors = std::vector<at::Tensor>;

/// Runs `fn` without keeping what its backward needs, and runs it again when backward comes: memory
/// for time, as torch.utils.checkpoint.
///
///   x = nn::checkpoint([&](const at::Tensor& h) { return block->forward(h); }, x);
///   auto [k, v] = nn::checkpoint(project, x, mask);            // several tensors in and out
///   x = nn::checkpoint({.preserve_rng_state = false}, block, x);  // a module holder is a
///   function, too
///
/// Takes and returns tensors: any number in; one, a vector or a tuple out. Anything else is
/// captured. The parameters that `fn` uses get their gradients, also where no input requires one.
/// The second run sees the random state (of the CPU and the inputs' devices) and the autocast state
/// of the first; a batch norm in training mode updates its statistics twice, as in PyTorch.
///
/// Owns: a copy of `fn` and handles of the inputs, until the graph is freed. What `fn` captures by
///   reference must live as long.
/// Threads: the second run is on a thread of autograd.
/// Errors: unsupported in backward under create_graph and in torch::autograd::grad, which the
/// nested
///   backward cannot serve; invalid_argument where the second run gives other outputs than the
///   first.
/// Cost: one more forward of `fn`; memory of its inputs and outputs in place of all activations.
template <class Function, std::convertible_to<at::Tensor>... Inputs>
auto checkpoint(const CheckpointOptions& options, Function fn, const Inputs&... inputs);

template <class Function, std::convertible_to<at::Tensor>... Inputs>
auto checkpoint(Function fn, const Inputs&... inputs) {
  return checkpoint(CheckpointOptions{}, std::move(fn), inputs...);
}

/// The same over lists, for a number of inputs known only at run time.
[[nodiscard]] Tensors checkpoint_list(std::function<Tensors(const Tensors&)> fn, Tensors inputs,
                                      const CheckpointOptions& options = {});

// From here on: how results other than lists become lists and back.

inline Tensors to_list(const at::Tensor& tensor) { return {tensor}; }
inline Tensors to_list(const Tensors& tensors) { return tensors; }
template <class... Elements>
Tensors to_list(const std::tuple<Elements...>& tuple) {
  return std::apply([](const auto&... tensors) { return Tensors{tensors...}; }, tuple);
}

template <class Result>
Result from_list(const Tensors& tensors) {
  if constexpr (std::is_same_v<Result, at::Tensor>) {
    return tensors[0];
  } else if constexpr (std::is_same_v<Result, Tensors>) {
    return tensors;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Result{tensors[I]...};
    }(std::make_index_sequence<std::tuple_size_v<Result>>());
  }
}

template <class Function, std::convertible_to<at::Tensor>... Inputs>
auto checkpoint(const CheckpointOptions& options, Function fn, const Inputs&... inputs) {
  using Result = std::remove_cvref_t<std::invoke_result_t<Function&, const Inputs&...>>;
  auto over_lists = [fn = std::move(fn)](const Tensors& list) mutable {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return to_list(std::invoke(fn, list[I]...));
    }(std::index_sequence_for<Inputs...>());
  };
  return from_list<Result>(checkpoint_list(std::move(over_lists), {inputs...}, options));
}

}  // namespace yoke::nn
