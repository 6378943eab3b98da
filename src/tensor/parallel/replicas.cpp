#include "replicas.hpp"

#include <exception>
#include <numeric>

#include <ATen/Functions.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/ops/_foreach_add.h>

namespace yoke::parallel {

void ReplicaSet::State::run(std::size_t used, std::size_t here,
                            const std::function<void(std::size_t)>& work) {
  const at::ThreadLocalState caller;  // gradient mode, autocast
  for (std::size_t i = 0; i < used; ++i) {
    if (i == here) continue;
    threads[i]->begin([&work, &caller, i] {
      const at::ThreadLocalStateGuard guard(caller);
      work(i);
    });
  }
  std::exception_ptr first;
  if (here < used) {
    try {
      work(here);
    } catch (...) {
      first = std::current_exception();
    }
  }
  for (std::size_t i = 0; i < used; ++i) {
    if (i == here) continue;
    const std::exception_ptr error = threads[i]->finish();
    if (!first) first = error;
  }
  if (first) std::rethrow_exception(first);
}

void ReplicaSet::State::collect_gradients(std::size_t used) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor>& home = replicas[0].parameters;
  for (std::size_t i = 1; i < used; ++i) {
    std::vector<at::Tensor> sums;
    std::vector<at::Tensor> addends;
    for (std::size_t p = 0; p < home.size(); ++p) {
      at::Tensor& gradient = replicas[i].parameters[p].mutable_grad();
      if (!gradient.defined()) continue;
      at::Tensor moved = gradient.to(replicas[0].device, /*non_blocking=*/true);
      gradient = at::Tensor();
      at::Tensor& sum = home[p].mutable_grad();
      if (!sum.defined()) {
        sum = moved;
        continue;
      }
      sums.push_back(sum);
      addends.push_back(moved);
    }
    if (!sums.empty()) at::_foreach_add_(sums, addends);
  }
}

double share_of(const std::vector<std::int64_t>& rows, std::size_t i) {
  const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  return static_cast<double>(rows[i]) / static_cast<double>(all);
}

}  // namespace yoke::parallel
