#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "yoke/checkpoint/checkpoint.hpp"
#include "yoke/core/error.hpp"

namespace yoke::checkpoint {

/// A folder of its own for each test.
class Scratch : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "yoke-checkpoint-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

/// A linear layer over a weight of another one.
struct TiedLinear : torch::nn::Module {
  explicit TiedLinear(const at::Tensor& shared)
      : weight(register_parameter("weight", shared)),
        bias(register_parameter("bias", torch::zeros({shared.size(0)}))) {}

  at::Tensor weight;
  at::Tensor bias;
};

/// Two linear layers that share their weight, batch norm between them, a parameter and a buffer of
/// its own: what shows every rule of the order. state_dict_twin.py has the same in Python.
struct Net : torch::nn::Module {
  explicit Net(std::int64_t width = 4)
      : first(register_module("first", torch::nn::Linear(width, width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(width))),
        last(register_module("last", std::make_shared<TiedLinear>(first->weight))),
        mean(register_buffer("mean", torch::zeros({2}))),
        scale(register_parameter("scale", torch::ones({1}))) {}

  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
  std::shared_ptr<TiedLinear> last;
  at::Tensor mean;
  at::Tensor scale;
};

inline std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> result;
  for (const auto& item : state) result.push_back(item.first);
  return result;
}

inline const at::Tensor& tensor_of(const StateDict& state, const std::string& name) {
  for (const auto& item : state) {
    if (item.first == name) return item.second;
  }
  throw std::out_of_range(name);
}

/// Distinct values: 0, 1, 2, ... over all tensors, tied ones counted once.
inline void fill_counting(torch::nn::Module& module) {
  std::int64_t next = 0;
  for (auto& [name, tensor] : state_dict(module)) {
    if (name == "last.weight") continue;
    tensor.copy_(torch::arange(next, next + tensor.numel()).reshape(tensor.sizes()));
    next += tensor.numel();
  }
}

/// The error that `action` throws; a test failure if it throws none.
template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(Code::internal, "no error was thrown");
}

}  // namespace yoke::checkpoint
