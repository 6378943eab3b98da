#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/parallel/module_access.hpp"
#include "yoke/parallel/replica_set.hpp"
#include "yoke/parallel/tensors.hpp"
#include "yoke/parallel/wrap_guard.hpp"

namespace yoke::parallel {

struct DataParallelOptions {
  /// Cards, by torch's numbers; the module lies on the first. Empty: every card. On CPUs: logical
  /// replicas, by any distinct numbers.
  std::vector<int> device_ids{};
  std::optional<int>
      output_device{};  ///< where outputs come together; default: the first of device_ids
};

struct DataParallelReport {
  std::vector<ReplicaReport> replicas;
  std::string advice;  ///< why DistributedDataParallel would serve better; may be empty
};

/// A tensor argument that every replica gets whole, in place of its share of rows: class weights, a
/// mask, an anchor.
struct Replicated {
  at::Tensor tensor;
};

/// The device on which the module lies decides what device_ids mean. Checks them. Errors:
/// invalid_argument.
[[nodiscard]] std::vector<at::Device> replica_devices(const NamedTensors& parameters,
                                                      const DataParallelOptions& options);
[[nodiscard]] at::Device gather_device(const std::vector<at::Device>& devices,
                                       const DataParallelOptions& options);
[[nodiscard]] std::string replica_name(at::Device device, std::size_t replica);
/// What is known about the job before its first step, said as one line where
/// DistributedDataParallel would be better.
void advise_at_start(std::size_t devices);
[[nodiscard]] std::string advice_now(const std::vector<ReplicaReport>& replicas);

/// One model on several devices of one process: call it in place of the model. Rows of the inputs
/// are dealt to replicas, each on its own thread, forward and backward; gradients, weights and
/// buffers are the module's own.
///
///   yoke::DataParallel parallel(model, {.device_ids = {0, 1}});
///   torch::cross_entropy_loss(parallel(input), target).backward();
///
/// Model: a ModuleHolder or std::shared_ptr to a torch::nn::Cloneable module, or a
/// torch::jit::Module; with
///   `make_replica`, any module.
/// Inputs: any number; tensors of at least one dimension must agree in their first and are dealt
/// along it, others go to
///   every replica, and so does Replicated{tensor}. A batch of fewer rows than replicas uses fewer.
///   Outputs: rows are joined in order on the output device, scalars become their mean weighted by
///   rows.
/// Gradients: the same as without the wrapper, up to the order of sums. Buffers: the first
/// replica's, as under torch
///   (its batch statistics are those of its own rows).
/// Owns: the model together with the caller, the replicas and their threads.
/// Threads: one at a time. Errors: invalid_argument for a module on another device, a device named
/// twice, a module
///   wrapped before, inputs of unequal rows; unsupported for create_graph. The module's own errors
///   pass through.
/// Cost: see ReplicaSet; with one device, nothing.
template <class Model>
class DataParallel {
  using Access = ModuleAccess<Model>;

 public:
  explicit DataParallel(Model model, DataParallelOptions options = {})
      : DataParallel(
            std::move(model), [](Model& from, at::Device device) { return cloned(from, device); },
            options) {}

  /// `make_replica(module, device)` gives another module of the same tensors on `device`, as Model.
  template <class MakeReplica>
  DataParallel(Model model, MakeReplica&& make_replica, DataParallelOptions options = {})
      : guard_(Access::parameters(model), "DataParallel") {
    const std::vector<at::Device> devices = replica_devices(Access::parameters(model), options);
    replicas_.push_back(std::make_shared<Model>(std::move(model)));
    for (std::size_t i = 1; i < devices.size(); ++i) {
      replicas_.push_back(std::make_shared<Model>(make_replica(*replicas_[0], devices[i])));
    }
    std::vector<ReplicaSet::Member> members;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      members.push_back(
          {.device = devices[i],
           .name = replica_name(devices[i], i),
           .parameters = [replica = replicas_[i]] { return Access::parameters(*replica); },
           .buffers = [replica = replicas_[i]] { return Access::buffers(*replica); }});
    }
    set_ = std::make_unique<ReplicaSet>(std::move(members), gather_device(devices, options));
    advise_at_start(devices.size());
  }

  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  template <class... Args>
  auto forward(Args&&... args) {
    using Output = std::decay_t<decltype(Access::forward(*replicas_[0],
                                                         unwrapped(std::forward<Args>(args))...))>;
    const std::vector<std::int64_t> rows = set_->split(common_rows(args...));
    const std::size_t used = rows.size();
    follow_mode();
    std::vector<ScatteredInput> wanted;
    if (used == 1) {
      auto only = std::make_tuple(dealt(args, rows, 0, wanted, /*whole=*/true)...);
      auto output = call(*replicas_[0], std::move(only));
      visit_tensors(output, [this](at::Tensor& tensor) {
        if (tensor.defined()) tensor = tensor.to(set_->output_device());
      });
      return output;
    }
    set_->refresh(used);
    std::vector<std::tuple<decltype(unwrapped(std::forward<Args>(args)))...>> inputs;
    for (std::size_t i = 0; i < used; ++i) {
      next_wanted_ = 0;
      inputs.emplace_back(dealt(args, rows, i, wanted, /*whole=*/false)...);
    }
    std::vector<std::optional<Output>> outputs(used);
    set_->run(used, [&](std::size_t i) {
      outputs[i].emplace(call(*replicas_[i], std::move(inputs[i])));
    });

    std::vector<std::vector<at::Tensor>> tensors(used);
    for (std::size_t i = 0; i < used; ++i) {
      visit_tensors(*outputs[i], [&, i](at::Tensor& tensor) { tensors[i].push_back(tensor); });
    }
    const std::vector<at::Tensor> joined =
        set_->gather(std::move(tensors), rows, std::move(wanted));
    Output result = std::move(*outputs[0]);
    auto next = joined.begin();
    visit_tensors(result, [&next](at::Tensor& tensor) { tensor = *next++; });
    return result;
  }

  [[nodiscard]] Model& module() noexcept { return *replicas_[0]; }
  auto operator->() { return &**replicas_[0]; }
  [[nodiscard]] std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (auto& [name, tensor] : Access::parameters(*replicas_[0])) all.push_back(tensor);
    return all;
  }
  [[nodiscard]] NamedTensors named_parameters() const { return Access::parameters(*replicas_[0]); }
  [[nodiscard]] NamedTensors named_buffers() const { return Access::buffers(*replicas_[0]); }
  void train(bool on = true) { Access::train(*replicas_[0], on); }
  void eval() { train(false); }

  [[nodiscard]] DataParallelReport report() const {
    DataParallelReport report{.replicas = set_->report(), .advice = {}};
    report.advice = advice_now(report.replicas);
    return report;
  }

 private:
  static Model cloned(Model& from, at::Device device) {
    if constexpr (requires { from.deepcopy(); }) {
      Model copy = from.deepcopy();
      copy.to(device);
      return copy;
    } else {
      using Impl = std::remove_reference_t<decltype(*from)>;
      try {
        auto copy = std::dynamic_pointer_cast<Impl>(from->clone(device));
        if (copy) return Model(std::move(copy));
      } catch (const std::exception& error) {
        throw Error(Code::unsupported, "wrap the model in DataParallel: it cannot be cloned",
                    "derive it from torch::nn::Cloneable, give make_replica, or use "
                    "DistributedDataParallel")
            .caused_by(error);
      }
      throw Error(Code::unsupported,
                  "wrap the model in DataParallel: its clone() gives another type",
                  "derive it from torch::nn::Cloneable of its own class");
    }
  }

  template <class T>
  static std::decay_t<T> unwrapped(T&& value) {
    return std::forward<T>(value);
  }
  static at::Tensor unwrapped(const Replicated& value) { return value.tensor; }
  static at::Tensor unwrapped(Replicated&& value) { return std::move(value.tensor); }
  static at::Tensor unwrapped(Replicated& value) { return value.tensor; }

  template <class... Args>
  static std::int64_t common_rows(Args&... args) {
    std::optional<std::int64_t> rows;
    const auto look = [&rows](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.dim() == 0) return;
      if (rows && *rows != tensor.size(0)) {
        throw Error(Code::invalid_argument,
                    core::text("DataParallel: deal the inputs: their batch sizes ", *rows, " and ",
                               tensor.size(0), " differ"),
                    "give tensors of equal first size, or wrap what every replica needs whole in "
                    "Replicated{tensor}");
      }
      rows = tensor.size(0);
    };
    const auto look_into = [&](auto& arg) {
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(arg)>, Replicated>)
        visit_tensors(arg, look);
    };
    (look_into(args), ...);
    return rows.value_or(1);
  }

  /// Replica `i`'s copy of an argument.
  template <class T>
  auto dealt(T& arg, const std::vector<std::int64_t>& rows, std::size_t i,
             std::vector<ScatteredInput>& wanted, bool whole) {
    const at::Device device = set_->device(i);
    if constexpr (std::is_same_v<std::remove_cvref_t<T>, Replicated>) {
      return arg.tensor.to(device, /*non_blocking=*/true);
    } else {
      std::decay_t<T> copy = arg;
      visit_tensors(copy, [&](at::Tensor& tensor) {
        if (!tensor.defined()) return;
        if (whole || tensor.dim() == 0) {
          tensor = tensor.to(device, /*non_blocking=*/true);
          return;
        }
        std::int64_t begin = 0;
        for (std::size_t before = 0; before < i; ++before) begin += rows[before];
        at::Tensor piece = tensor.narrow(0, begin, rows[i]);
        if (!tensor.requires_grad() || !at::GradMode::is_enabled()) {
          tensor = piece.to(device, /*non_blocking=*/true);
          return;
        }
        if (i == 0) wanted.push_back({.original = tensor, .pieces = {}});
        piece = piece.detach().to(device, /*non_blocking=*/true).set_requires_grad(true);
        wanted[next_wanted_++].pieces.push_back(piece);
        tensor = piece;
      });
      return copy;
    }
  }

  template <class Inputs>
  static auto call(Model& replica, Inputs&& inputs) {
    return std::apply(
        [&replica](auto&&... input) {
          return Access::forward(replica, std::forward<decltype(input)>(input)...);
        },
        std::forward<Inputs>(inputs));
  }

  // Only the module's own mode is switched by its user.
  void follow_mode() {
    const bool training = Access::training(*replicas_[0]);
    for (std::size_t i = 1; i < replicas_.size(); ++i) {
      if (Access::training(*replicas_[i]) != training) Access::train(*replicas_[i], training);
    }
  }

  WrapGuard guard_;
  std::vector<std::shared_ptr<Model>> replicas_;
  std::unique_ptr<ReplicaSet> set_;
  std::size_t next_wanted_ = 0;
};

}  // namespace yoke::parallel

namespace yoke {
using parallel::DataParallel;
using parallel::DataParallelOptions;
}  // namespace yoke
