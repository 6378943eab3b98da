#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "device_threads.hpp"
#include "yoke/parallel/replica_set.hpp"

namespace yoke::parallel {

/// One replica's tensors and what it last saw of the module's.
struct Replica {
  at::Device device = at::kCPU;
  std::string name;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  std::uint64_t parameters_seen = 0;  // sum of the module's version counters
  std::uint64_t buffers_seen = 0;
  bool fresh = false;
};

struct ReplicaSet::State {
  std::vector<Replica> replicas;
  at::Device output_device = at::kCPU;
  std::size_t output_replica = 0;  // the one on the output device
  std::vector<std::unique_ptr<DeviceThread>>
      threads;  // per replica; null for one that always runs in the caller's
  std::vector<std::int64_t> last_rows;

  /// Runs `work(replica)` for replicas 0 to used - 1 at the same time, that of replica `here` in
  /// the caller's thread.
  void run(std::size_t used, std::size_t here, const std::function<void(std::size_t)>& work);
  /// Adds the gradients of replicas 1 and up into the module's, in replica order, and drops them
  /// there.
  void collect_gradients(std::size_t used);
};

/// Rows of replica i over all rows: its weight in a mean.
[[nodiscard]] double share_of(const std::vector<std::int64_t>& rows, std::size_t i);

}  // namespace yoke::parallel
