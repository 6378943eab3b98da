#include "agreement.hpp"

#include <map>

#include <ATen/Functions.h>

#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using core::text;

constexpr std::int64_t kPackBytes = 64 << 20;

// Buckets and broadcasts go by the order in memory, so that has to be equal as well; nothing for
// the usual one. A dimension of one element has no meaningful stride.
std::string order_text(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return {};
  std::vector<std::string> strides;
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    strides.push_back(tensor.size(d) == 1 ? "-" : std::to_string(tensor.stride(d)));
  return " strides " + core::joined(strides, "x");
}

std::string described(const NamedTensors& parameters, const NamedTensors& buffers) {
  std::string lines;
  for (const auto& [name, tensor] : parameters) {
    lines += text("parameter ", name, " ", comm::shape_text(tensor), order_text(tensor),
                  tensor.requires_grad() ? "" : " frozen", "\n");
  }
  for (const auto& [name, tensor] : buffers)
    lines += text("buffer ", name, " ", comm::shape_text(tensor), order_text(tensor), "\n");
  return lines;
}

std::string first_difference(const std::string& a, const std::string& b, int rank_a, int rank_b) {
  const auto lines_a = core::split(a, '\n');
  const auto lines_b = core::split(b, '\n');
  for (std::size_t i = 0; i < std::max(lines_a.size(), lines_b.size()); ++i) {
    const std::string at_a =
        i < lines_a.size() && !lines_a[i].empty() ? lines_a[i] : "nothing more";
    const std::string at_b =
        i < lines_b.size() && !lines_b[i].empty() ? lines_b[i] : "nothing more";
    if (at_a != at_b) return text("rank ", rank_a, " has ", at_a, ", rank ", rank_b, " has ", at_b);
  }
  return "no difference";
}

void broadcast_packed(comm::Group& group, const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) {
    at::Tensor only = tensors.front();
    group.broadcast(only, 0);
    return;
  }
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  at::Tensor packed = at::cat(flat);
  group.broadcast(packed, 0);
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(packed.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

}  // namespace

void require_same_models(comm::Group& host_group, const NamedTensors& parameters,
                         const NamedTensors& buffers) {
  const std::vector<std::string> all = host_group.all_gather_bytes(described(parameters, buffers));
  for (std::size_t peer = 1; peer < all.size(); ++peer) {
    if (all[peer] == all[0]) continue;
    throw Error(
        Code::invalid_argument,
        text("rank ", host_group.rank(), ": wrap the model: the ranks built different models: ",
             first_difference(all[0], all[peer], 0, static_cast<int>(peer))),
        "build the same model on every rank, in the same memory format; only its values may differ "
        "before wrapping");
  }
}

void require_on_device(const NamedTensors& tensors, at::Device device, int rank) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.device() == device) continue;
    throw Error(Code::invalid_argument,
                text("rank ", rank, ": wrap the model: ", name, " is on ", tensor.device().str(),
                     ", the rank's device is ", device.str()),
                "write model->to(world.device()); before wrapping");
  }
}

void broadcast_from_rank_0(comm::Group& group, const NamedTensors& tensors) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<at::Tensor>> by_dtype;
  std::map<at::ScalarType, std::int64_t> bytes;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.numel() == 0) continue;
    auto& pack = by_dtype[tensor.scalar_type()];
    // detach: a leaf that requires grad may not be written in place even here
    pack.push_back(tensor.detach());
    bytes[tensor.scalar_type()] += static_cast<std::int64_t>(tensor.nbytes());
    if (bytes[tensor.scalar_type()] >= kPackBytes) {
      broadcast_packed(group, pack);
      pack.clear();
      bytes[tensor.scalar_type()] = 0;
    }
  }
  for (auto& [dtype, pack] : by_dtype) {
    if (!pack.empty()) broadcast_packed(group, pack);
  }
}

}  // namespace yoke::parallel
