#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::core {
class TelemetryWriter;
}  // namespace yoke::core

namespace yoke::comm {

enum class ReduceOp { sum, product, minimum, maximum };

/// The collectives a group may or may not have; see Group::supports().
enum class Op {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_receive,
  barrier,
  mean
};

/// What one rank brings to a weighted mean: the result is sum(scale_r * x_r) / sum(count_r) over
/// the ranks r. A rank whose scale is 0 is not read, so its numbers may be NaN.
struct Contribution {
  double scale = 1.0;
  double count = 1.0;
};

/// A started collective. Destroying it without wait() abandons the result, not the collective.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  /// Memory on the host: blocks until the result is there. On a device: orders the current stream
  /// after the result and does not block the host. Errors: timeout, peer_lost, invalid_argument
  /// (ranks disagree).
  virtual void wait() = 0;
};

/// The ranks' contributions to one mean, on their way to being known by all. Borrows the group.
class Agreement {
 public:
  explicit Agreement(Contribution mine) : mine_(mine) {}
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  virtual ~Agreement() = default;

  [[nodiscard]] Contribution mine() const noexcept { return mine_; }
  /// sum(count_r) over the ranks; waits for the last of them.
  [[nodiscard]] virtual double total_count() = 0;

 private:
  Contribution mine_;
};

/// A fixed set of ranks that exchange tensors.
///
///   group.all_reduce(loss_sum);                       // in place, on every rank
///   group.broadcast(weights, /*root=*/0);
///
/// Shapes and dtypes: any dense ones, equal on every rank. Ranks: every call is collective, in the
/// same order on all
///   of them (send and receive excepted).
/// Threads: one at a time. Streams: device tensors take part in the current stream's order.
/// Errors: Error with the operation, its sequence number, shape and dtype, this rank and the ranks
/// that did not come:
///   timeout after `timeout()`, peer_lost where a rank is known to be gone, invalid_argument where
///   ranks disagree about the call, unsupported where supports() says so.
class Group {
 public:
  Group(int rank, int size, std::string name);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;  ///< leaves: ranks that still wait for this one get peer_lost

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// The backend's name: "shm", "threads", "gloo", "nccl", "alone".
  [[nodiscard]] const std::string& backend() const noexcept { return name_; }
  /// Collectives begun so far on this rank.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] virtual std::chrono::milliseconds timeout() const noexcept = 0;
  [[nodiscard]] virtual bool supports(Op op) const noexcept;

  /// Notes the begin and end of each collective in this rank's telemetry; null stops that.
  /// Borrowed.
  void record_to(core::TelemetryWriter* telemetry) noexcept { telemetry_ = telemetry; }

  void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::sum);  ///< in place
  void broadcast(at::Tensor& tensor, int root);                      ///< in place

  /// `out` [size, ...tensor's shape]: row r is rank r's tensor.
  void all_gather(at::Tensor& out, const at::Tensor& tensor);

  /// `in` [size, ...out's shape]: out is the reduction over ranks of their rows `rank()`.
  void reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp op = ReduceOp::sum);

  /// `in` and `out` [size, ...]: row s of rank r's `in` becomes row r of rank s's `out`.
  void all_to_all(at::Tensor& out, const at::Tensor& in);

  void send(const at::Tensor& tensor, int to);  ///< pairs with receive() on rank `to`, in order
  void receive(at::Tensor& tensor, int from);   ///< blocks until it is there
  void barrier();                               ///< no rank returns before all have called

  /// One byte string per rank, any lengths; two collectives. For set-up and reports.
  [[nodiscard]] std::vector<std::string> all_gather_bytes(const std::string& mine);

  /// Memory whose mean is cheap: the gradient engine's buckets are made by it. Collective.
  [[nodiscard]] virtual at::Tensor empty_bucket(std::int64_t numel,
                                                const at::TensorOptions& options);

  /// Begins to tell the others `mine`; the agreement serves any number of start_mean() calls.
  /// Collective.
  [[nodiscard]] virtual std::unique_ptr<Agreement> agree(Contribution mine) = 0;

  /// Begins to replace `bucket` (from empty_bucket()) by the weighted mean over ranks. Collective;
  /// several may be under way and end in the order of their start. Borrows bucket and agreement
  /// until the work's wait().
  [[nodiscard]] std::unique_ptr<Work> start_mean(at::Tensor& bucket, Agreement& agreement);

  /// Does what can be done for started collectives without waiting. Cheap when there is nothing to
  /// do.
  virtual void progress() {}

 protected:
  /// "all-reduce #812 (25.0 MiB: 20x10 float32)": what messages call the collective that has just
  /// begun.
  [[nodiscard]] std::string describe(const char* op, const at::Tensor& tensor) const;
  void next_sequence() noexcept { ++sequence_; }
  void require_rank(int peer, const char* op) const;

 private:
  virtual void do_all_reduce(at::Tensor& tensor, ReduceOp op) = 0;
  virtual void do_broadcast(at::Tensor& tensor, int root) = 0;
  virtual void do_all_gather(at::Tensor& out, const at::Tensor& tensor) = 0;
  virtual void do_reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp op) = 0;
  virtual void do_all_to_all(at::Tensor& out, const at::Tensor& in) = 0;
  virtual void do_send(const at::Tensor& tensor, int to) = 0;
  virtual void do_receive(at::Tensor& tensor, int from) = 0;
  virtual void do_barrier() = 0;
  virtual std::unique_ptr<Work> do_start_mean(at::Tensor& bucket, Agreement& agreement) = 0;

  int rank_;
  int size_;
  std::string name_;
  std::uint64_t sequence_ = 0;
  core::TelemetryWriter* telemetry_ = nullptr;
};

/// "20x10 float32" for messages and for comparing what ranks call.
[[nodiscard]] std::string shape_text(const at::Tensor& tensor);

/// A group of one rank: every collective is a copy. Cost: none.
[[nodiscard]] std::unique_ptr<Group> alone_group();

struct LocalGroupOptions {
  std::chrono::milliseconds timeout{30'000};  ///< for each collective
};

/// `size` groups for `size` threads of this process: ranks as threads, for tests and for
/// DataParallel on CPUs. Each is used by one thread; they may be destroyed in any order.
[[nodiscard]] std::vector<std::unique_ptr<Group>> local_groups(int size,
                                                               LocalGroupOptions options = {});

}  // namespace yoke::comm
