#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/parallel/gradient_engine.hpp"

namespace yoke::parallel {

struct ReplicaReport {
  std::string device;                  ///< "cuda:1"; on CPUs "cpu#1", the logical replica
  std::int64_t rows = 0;               ///< of the last forward
  std::uint64_t memory_allocated = 0;  ///< bytes that torch's allocator holds there; 0 on CPUs
  std::uint64_t memory_peak = 0;
};

/// An input that took part in a scatter and wants its gradient back.
struct ScatteredInput {
  at::Tensor original;
  std::vector<at::Tensor> pieces;  ///< per replica, leaves that require grad
};

/// The replicas of one model in one process: a thread and a device each, weights that follow the
/// first one's, gradients that end in the first one's. DataParallel is its typed front.
///
/// Owns: threads, the replicas' tensors together with the modules. Threads: one caller at a time.
/// Cost: per forward after a change of weights one copy of them to each other device (none on CPUs:
/// they share memory);
///   per backward one copy of each other device's gradients.
class ReplicaSet {
 public:
  struct Member {
    at::Device device;
    std::string name;
    std::function<NamedTensors()> parameters;
    std::function<NamedTensors()> buffers;
  };

  /// `members[0]` is the wrapped module itself. Errors: invalid_argument where replicas differ.
  explicit ReplicaSet(std::vector<Member> members, at::Device output_device);
  ~ReplicaSet();
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] at::Device device(std::size_t replica) const;
  [[nodiscard]] at::Device output_device() const noexcept;

  /// Rows per replica for a batch of `rows`, as at::chunk cuts it: 5 rows on 4 replicas are 2,
  /// 2, 1.
  [[nodiscard]] std::vector<std::int64_t> split(std::int64_t rows) const;

  /// Brings the replicas' parameters and buffers up to the module's.
  void refresh(std::size_t used);

  /// Runs `work(replica)` for replicas 0 to used - 1, each on its thread (0: the caller's) with its
  /// device current and the caller's gradient mode and autocast state. Rethrows the first replica's
  /// error.
  void run(std::size_t used, const std::function<void(std::size_t)>& work);

  /// Joins the replicas' outputs on the output device: rows one after the other; scalars as the
  /// mean weighted by rows. outputs[replica][i]. Backward through them runs one backward per
  /// replica, at the same time, and adds the gradients into the module's.
  [[nodiscard]] std::vector<at::Tensor> gather(std::vector<std::vector<at::Tensor>> outputs,
                                               const std::vector<std::int64_t>& rows,
                                               std::vector<ScatteredInput> inputs);

  [[nodiscard]] std::vector<ReplicaReport> report() const;

  struct State;  ///< known to the sources only

 private:
  std::shared_ptr<State> state_;
};

/// Why a job would be better off with DistributedDataParallel; empty where it would not. At most
/// one line.
struct AdviceFacts {
  std::size_t devices = 1;
  int nodes = 1;
  std::uint64_t first_device_bytes = 0;  ///< allocated on the first device after a step
  std::uint64_t other_device_bytes = 0;  ///< the most of any other; 0 where there is none
};
[[nodiscard]] std::string data_parallel_advice(const AdviceFacts& facts);

}  // namespace yoke::parallel
