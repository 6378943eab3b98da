#include "yoke/optim/clip_grad_norm.hpp"

#include <algorithm>
#include <iterator>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {
namespace {

using Tensors = std::vector<at::Tensor>;

// The gradients by device and dtype, as the list operations want them.
std::vector<Tensors> gradient_lists(const Tensors& parameters) {
  std::vector<Tensors> lists;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    auto list = std::ranges::find_if(lists, [&](const Tensors& one) {
      return one[0].device() == gradient.device() && one[0].scalar_type() == gradient.scalar_type();
    });
    if (list == lists.end()) {
      lists.emplace_back();
      list = std::prev(lists.end());
    }
    list->push_back(gradient);
  }
  return lists;
}

}  // namespace

at::Tensor clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type) {
  if (!(max_norm >= 0) || !(norm_type > 0)) {
    throw Error(Code::invalid_argument,
                core::text("clip gradients to max_norm ", max_norm, " with norm_type ", norm_type),
                "give a max_norm of 0 or more and a norm_type above 0");
  }
  const torch::NoGradGuard no_grad;
  std::vector<Tensors> lists = gradient_lists(parameters);
  if (lists.empty()) return torch::zeros({});
  const at::Device home = lists[0][0].device();
  Tensors norms;
  for (const Tensors& list : lists) {
    for (const at::Tensor& norm : at::_foreach_norm(list, norm_type)) {
      norms.push_back(norm.to(home, at::promote_types(norm.scalar_type(), at::kFloat)));
    }
  }
  const at::Tensor total = at::linalg_vector_norm(at::stack(norms), norm_type);
  const at::Tensor factor = (max_norm / (total + 1e-6)).clamp_max(1.0);
  for (Tensors& list : lists) {
    at::_foreach_mul_(list, factor.to(list[0].device(), list[0].scalar_type()));
  }
  return total;
}

}  // namespace yoke::optim
