#include "yoke/comm/local_ranks.hpp"

#include <exception>
#include <thread>

#include <ATen/Parallel.h>

#include "yoke/core/error.hpp"

namespace yoke::comm {
namespace {

bool is_consequence(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code() == Code::peer_lost;
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_local_ranks(int size, const std::function<void(World&)>& rank_main,
                     LocalGroupOptions options) {
  std::vector<std::unique_ptr<Group>> groups = local_groups(size, options);
  std::vector<std::exception_ptr> errors(groups.size());
  std::vector<std::thread> threads;
  const int threads_each = std::max(1, at::get_num_threads() / size);
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(threads_each);  // else every rank's team of threads takes every core
      try {
        World world = World::of(
            std::move(groups[rank]));  // leaves its group when it ends, so that others notice
        rank_main(world);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr chosen;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    if (!chosen || (is_consequence(chosen) && !is_consequence(error))) chosen = error;
  }
  if (chosen) std::rethrow_exception(chosen);
}

}  // namespace yoke::comm
