#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "yoke/comm/group.hpp"

namespace yoke::comm {

struct C10dGroupOptions {
  std::string name;                           ///< "gloo" or "nccl"
  std::chrono::milliseconds timeout{30'000};  ///< for each collective
  bool check_calls = false;  ///< compare what the ranks call before each collective (slow)
};

/// A group over one of c10d's backends. Keeps the store to find out, after a failure, which ranks
/// did not come.
///
/// Owns: the backend, together with nobody else. `control`, borrowed, carries the counts of means
/// on the host; null makes the group carry them itself.
class C10dGroup final : public Group {
 public:
  C10dGroup(c10::intrusive_ptr<c10d::Backend> backend, c10::intrusive_ptr<c10d::Store> store,
            C10dGroupOptions options, Group* control);
  ~C10dGroup() override;

  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept override {
    return options_.timeout;
  }
  [[nodiscard]] bool supports(Op op) const noexcept override;
  std::unique_ptr<Agreement> agree(Contribution mine) override;

 private:
  class MeanWork;
  class ControlAgreement;
  class OwnAgreement;

  void do_all_reduce(at::Tensor& tensor, ReduceOp op) override;
  void do_broadcast(at::Tensor& tensor, int root) override;
  void do_all_gather(at::Tensor& out, const at::Tensor& tensor) override;
  void do_reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp op) override;
  void do_all_to_all(at::Tensor& out, const at::Tensor& in) override;
  void do_send(const at::Tensor& tensor, int to) override;
  void do_receive(at::Tensor& tensor, int from) override;
  void do_barrier() override;
  std::unique_ptr<Work> do_start_mean(at::Tensor& bucket, Agreement& agreement) override;

  /// Runs `start`, waits for its work, and turns c10d's errors into ours.
  void finish(const char* op, const at::Tensor& tensor,
              const std::function<c10::intrusive_ptr<c10d::Work>()>& start);
  [[noreturn]] void fail(const std::string& call, const std::exception& error);
  [[nodiscard]] std::chrono::milliseconds wait_limit() const;
  std::string absent_ranks(const std::string& call) noexcept;
  void check_call(const std::string& call);

  c10::intrusive_ptr<c10d::Backend> backend_;
  c10::intrusive_ptr<c10d::Store> store_;
  C10dGroupOptions options_;
  Group* control_;
  std::vector<at::Tensor> counts_;  // [1] double each, from the control group
  std::size_t agreements_ = 0;
  std::uint64_t checks_ = 0;
};

}  // namespace yoke::comm
