#include "yoke/parallel/replica_set.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>

#include "gather_node.hpp"
#include "replicas.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using core::text;

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

void require_alike(const NamedTensors& home, const NamedTensors& replica, const std::string& name) {
  const std::size_t common = std::min(home.size(), replica.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (home[i].first == replica[i].first && home[i].second.sizes() == replica[i].second.sizes() &&
        home[i].second.scalar_type() == replica[i].second.scalar_type()) {
      continue;
    }
    throw Error(Code::invalid_argument, text("DataParallel: replica ", name, ": ", replica[i].first,
                                             " is not the module's ", home[i].first));
  }
  if (home.size() != replica.size()) {
    throw Error(Code::invalid_argument,
                text("DataParallel: replica ", name, " has ", replica.size(),
                     " tensors, the module has ", home.size()));
  }
}

std::uint64_t versions_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t sum = 0;  // versions only grow, so the sum changes with any of them
  for (const at::Tensor& tensor : tensors) sum += static_cast<std::uint64_t>(tensor._version());
  return sum;
}

at::Tensor joined(const std::vector<std::vector<at::Tensor>>& outputs, std::size_t j,
                  const std::vector<std::int64_t>& rows, at::Device device) {
  std::vector<at::Tensor> parts;
  for (const auto& output : outputs)
    parts.push_back(output[j].detach().to(device, /*non_blocking=*/true));
  if (parts[0].dim() > 0) return at::cat(parts);
  if (!at::isFloatingType(parts[0].scalar_type())) return at::stack(parts);
  at::Tensor mean = at::zeros_like(parts[0]);
  for (std::size_t i = 0; i < parts.size(); ++i) mean.add_(parts[i], share_of(rows, i));
  return mean;
}

}  // namespace

ReplicaSet::ReplicaSet(std::vector<Member> members, at::Device output_device)
    : state_(std::make_shared<State>()) {
  State& state = *state_;
  state.output_device = output_device;
  const NamedTensors home_parameters = members[0].parameters();
  const NamedTensors home_buffers = members[0].buffers();
  for (const Member& member : members) {
    require_alike(home_parameters, member.parameters(), member.name);
    require_alike(home_buffers, member.buffers(), member.name);
    state.replicas.push_back({.device = member.device,
                              .name = member.name,
                              .parameters = tensors_of(member.parameters()),
                              .buffers = tensors_of(member.buffers())});
  }
  for (std::size_t i = 1; i < state.replicas.size(); ++i) {
    for (std::size_t p = 0; p < home_parameters.size(); ++p) {
      at::Tensor& parameter = state.replicas[i].parameters[p];
      parameter.set_requires_grad(home_parameters[p].second.requires_grad());
      // On the CPU replicas read the module's own weights: nothing is ever copied.
      if (state.replicas[i].device.is_cpu()) parameter.set_data(home_parameters[p].second.detach());
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].device == output_device) {
      state.output_replica = i;
      break;
    }
  }
  const int threads_each = std::max(1, at::get_num_threads() / static_cast<int>(members.size()));
  state.threads.resize(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == 0 && state.output_replica == 0)
      continue;  // forward and backward run in the caller's thread
    state.threads[i] = std::make_unique<DeviceThread>([device = members[i].device, threads_each] {
      comm::set_current_device(device);
      if (device.is_cpu()) at::set_num_threads(threads_each);
    });
  }
}

ReplicaSet::~ReplicaSet() = default;

std::size_t ReplicaSet::size() const noexcept { return state_->replicas.size(); }
at::Device ReplicaSet::device(std::size_t replica) const {
  return state_->replicas[replica].device;
}
at::Device ReplicaSet::output_device() const noexcept { return state_->output_device; }

std::vector<std::int64_t> ReplicaSet::split(std::int64_t rows) const {
  const auto replicas = static_cast<std::int64_t>(size());
  const std::int64_t each = std::max<std::int64_t>(1, (rows + replicas - 1) / replicas);
  std::vector<std::int64_t> parts;
  for (std::int64_t left = rows; left > 0; left -= each) parts.push_back(std::min(each, left));
  if (parts.empty()) parts.push_back(0);
  state_->last_rows = parts;
  return parts;
}

void ReplicaSet::refresh(std::size_t used) {
  State& state = *state_;
  const at::NoGradGuard no_grad;
  Replica& home = state.replicas[0];
  const std::uint64_t parameters_now = versions_of(home.parameters);
  const std::uint64_t buffers_now = versions_of(home.buffers);
  for (std::size_t i = 1; i < used; ++i) {
    Replica& replica = state.replicas[i];
    const bool parameters_changed = !replica.fresh || replica.parameters_seen != parameters_now;
    const bool buffers_changed = !replica.fresh || replica.buffers_seen != buffers_now;
    if (parameters_changed && !replica.device.is_cpu()) {
      std::vector<at::Tensor> to;
      for (const at::Tensor& parameter : replica.parameters) to.push_back(parameter.detach());
      at::_foreach_copy_(to, home.parameters, /*non_blocking=*/true);
    }
    if (buffers_changed && !home.buffers.empty()) {
      at::_foreach_copy_(replica.buffers, home.buffers, /*non_blocking=*/true);
    }
    replica.parameters_seen = parameters_now;
    replica.buffers_seen = buffers_now;
    replica.fresh = true;
  }
}

void ReplicaSet::run(std::size_t used, const std::function<void(std::size_t)>& work) {
  state_->run(used, /*here=*/0, work);
}

std::vector<at::Tensor> ReplicaSet::gather(std::vector<std::vector<at::Tensor>> outputs,
                                           const std::vector<std::int64_t>& rows,
                                           std::vector<ScatteredInput> inputs) {
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (outputs[i].size() == outputs[0].size()) continue;
    throw Error(Code::invalid_argument,
                text("DataParallel: gather: replica 0 returned ", outputs[0].size(),
                     " tensors, replica ", i, " returned ", outputs[i].size()));
  }
  std::vector<at::Tensor> results;
  std::vector<std::size_t> differentiable;
  {
    const at::NoGradGuard no_grad;
    for (std::size_t j = 0; j < outputs[0].size(); ++j) {
      results.push_back(joined(outputs, j, rows, state_->output_device));
      const bool needs_grad = std::any_of(outputs.begin(), outputs.end(),
                                          [j](const auto& of) { return of[j].requires_grad(); });
      if (needs_grad && at::isFloatingType(results[j].scalar_type())) differentiable.push_back(j);
    }
  }
  if (!differentiable.empty()) {
    join_graphs(state_, results, differentiable, std::move(outputs), rows, std::move(inputs));
  }
  return results;
}

std::vector<ReplicaReport> ReplicaSet::report() const {
  std::vector<ReplicaReport> all;
  for (std::size_t i = 0; i < state_->replicas.size(); ++i) {
    const Replica& replica = state_->replicas[i];
    const comm::DeviceMemory memory = comm::device_memory(replica.device);
    all.push_back({.device = replica.name,
                   .rows = i < state_->last_rows.size() ? state_->last_rows[i] : 0,
                   .memory_allocated = memory.allocated,
                   .memory_peak = memory.peak});
  }
  return all;
}

}  // namespace yoke::parallel
