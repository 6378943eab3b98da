#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::comm {
class Group;
class World;
}  // namespace yoke::comm

namespace yoke::parallel {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct DistributedDataParallelOptions {
  std::size_t first_bucket_bytes{1 << 20};  ///< small, so that the first collective starts early
  std::size_t bucket_bytes{25 << 20};       ///< the others; a bucket closes once it holds this much
  bool check_models = true;  ///< compare names, shapes and dtypes over the ranks when wrapping
};

/// What the engine did; for reports and tests.
struct EngineReport {
  std::vector<std::string> unused;  ///< parameters that no rank used in the last synchronised step
  std::vector<std::string> unused_here;  ///< parameters that this rank did not use in it
  std::size_t buckets = 0;
  std::size_t bucket_bytes = 0;         ///< all buckets together
  std::uint64_t steps = 0;              ///< synchronised steps so far
  std::uint64_t collectives = 0;        ///< bucket means started so far
  std::uint64_t early_collectives = 0;  ///< those of them that started while backward still ran
  bool order_learnt = false;            ///< buckets follow the order seen in the first step
  std::vector<std::string>
      order;  ///< parameters in bucket order; part of a checkpoint (it decides sums' order)
};

/// Averages the gradients of a model's parameters over ranks while backward runs.
///
/// It hangs a hook on each parameter's gradient accumulator; when all gradients of a bucket are
/// there, they are copied into the bucket (one foreach copy), its weighted mean starts, and `.grad`
/// becomes a view into it. An identity function on forward's outputs arms the end of backward,
/// where what is left is sent and everything is waited for.
///
/// Means are exact: a backward from a local mean over n_r rows counts n_r times, so N ranks give
/// what one rank gives on the joined batch, also with unequal, empty and accumulated batches. As
/// under torch, micro-batches of an accumulation add up: divide each loss by their number.
///
/// Ranks: every rank runs the same sequence of synchronised backward passes and idle steps.
/// Owns: buckets of the size of all gradients. Borrows the groups; holds the parameters.
/// Threads: one backward at a time. Streams: copies on backward's stream; waits order the stream,
/// not the host. Errors: those of comm::Group; invalid_argument for a module that changed after
/// wrapping, or two losses with
///   different counts in one backward; all leave backward() with their type.
/// Cost: one copy of the gradients, ceil(bytes / bucket_bytes) + 1 means, no host synchronisation
/// on a card unless a
///   parameter was unused on this rank.
class GradientEngine {
 public:
  /// Collective: compares the models, broadcasts rank 0's parameters and buffers. `relist` gives
  /// the module's current tensors, to notice when they were replaced.
  GradientEngine(comm::Group& group, comm::Group& host_group,
                 std::function<NamedTensors()> parameters, std::function<NamedTensors()> buffers,
                 at::Device device, DistributedDataParallelOptions options);
  ~GradientEngine();
  GradientEngine(const GradientEngine&) = delete;
  GradientEngine& operator=(const GradientEngine&) = delete;

  /// Before a forward of `rows` rows; what it returns is armed with them.
  void before_forward(std::int64_t rows);

  /// The tensors a forward returns, behind the identity that arms backward. Without gradient mode:
  /// unchanged.
  [[nodiscard]] std::vector<at::Tensor> arm(std::vector<at::Tensor> outputs);

  /// Forward passes begun while it is false add gradients locally, without averaging.
  void set_synchronising(bool on) noexcept;
  [[nodiscard]] bool synchronising() const noexcept;

  /// Takes part in one step of the others with no data of its own.
  void idle_step();

  /// Collective: rank 0's buffers on every rank.
  void synchronise_buffers();

  [[nodiscard]] EngineReport report() const;

  struct State;  ///< known to the sources only

 private:
  std::shared_ptr<State> state_;  // also held, weakly, by the hooks and the nodes in graphs
};

}  // namespace yoke::parallel
