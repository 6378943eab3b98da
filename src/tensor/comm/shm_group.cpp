#include <array>
#include <condition_variable>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include <ATen/Functions.h>

#include "backends.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/shm/team.hpp"

namespace yoke::comm {
namespace {

using core::text;

shm::Dtype dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return shm::Dtype::float32;
    case at::kDouble: return shm::Dtype::float64;
    case at::kHalf: return shm::Dtype::float16;
    case at::kBFloat16: return shm::Dtype::bfloat16;
    case at::kChar: return shm::Dtype::int8;
    case at::kByte: return shm::Dtype::uint8;
    case at::kInt: return shm::Dtype::int32;
    case at::kLong: return shm::Dtype::int64;
    case at::kBool: return shm::Dtype::boolean;
    default:
      throw Error(
          Code::unsupported,
          text("collective over shared memory: no reduction for dtype ",
               c10::toString(tensor.scalar_type())),
          "convert to float32, float64, float16, bfloat16, int8, uint8, int32, int64 or bool");
  }
}

shm::Reduction reduction_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return shm::Reduction::sum;
    case ReduceOp::product: return shm::Reduction::product;
    case ReduceOp::minimum: return shm::Reduction::minimum;
    case ReduceOp::maximum: return shm::Reduction::maximum;
  }
  return shm::Reduction::sum;
}

std::string sizes_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return sizes.empty() ? "scalar" : core::joined(sizes, "x");
}

void require_host(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return;
  throw Error(Code::unsupported,
              text("collective over shared memory: the tensor lies on ", tensor.device().str()),
              "use the nccl group, or move the tensor to the CPU");
}

/// Which tensor's memory is which shared buffer. Owned by the group and by each bucket's deleter: a
/// bucket may outlive its group.
struct Buckets {
  std::mutex mutex;
  std::map<const void*, shm::SharedBuffer> live;
};

class ShmWork final : public Work {
 public:
  ShmWork(shm::Team& team, shm::Ticket ticket) : team_(team), ticket_(ticket) {}
  void wait() override { team_.wait(ticket_); }

 private:
  shm::Team& team_;
  shm::Ticket ticket_;
};

class DoneWork final : public Work {
 public:
  void wait() override {}
};

/// The counts travel with each mean itself, so nothing is sent ahead.
class ShmAgreement final : public Agreement {
 public:
  ShmAgreement(shm::Team& team, Contribution mine) : Agreement(mine), team_(team) {}
  double total_count() override {
    if (!known_) {
      total_ = mine().count;
      team_.all_reduce(&total_, {.count = 1, .dtype = shm::Dtype::float64, .shape = "count"},
                       shm::Reduction::sum);
      known_ = true;
    }
    return total_;
  }

 private:
  shm::Team& team_;
  double total_ = 0;
  bool known_ = false;
};

class ShmGroup final : public Group {
 public:
  ShmGroup(std::unique_ptr<shm::Team> team, std::string name, std::chrono::milliseconds timeout)
      : Group(team->rank(), team->size(), std::move(name)),
        team_(std::move(team)),
        timeout_(timeout) {}

  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept override { return timeout_; }

  at::Tensor empty_bucket(std::int64_t numel, const at::TensorOptions& options) override {
    const std::size_t bytes = static_cast<std::size_t>(numel) * options.dtype().itemsize();
    if (bytes == 0 || !options.device().is_cpu()) return Group::empty_bucket(numel, options);
    const shm::SharedBuffer buffer = team_->allocate(bytes);
    void* data = buffer.data();
    {
      const std::lock_guard lock(buckets_->mutex);
      buckets_->live.emplace(data, buffer);
    }
    const auto forget = [buckets = buckets_](void* pointer) {
      const std::lock_guard lock(buckets->mutex);
      buckets->live.erase(pointer);
    };
    return at::from_blob(data, {numel}, forget, options);
  }

  std::unique_ptr<Agreement> agree(Contribution mine) override {
    return std::make_unique<ShmAgreement>(*team_, mine);
  }

  void progress() override { team_->progress(); }

 private:
  static shm::Elements elements(const at::Tensor& tensor, const std::string& shape,
                                std::int64_t parts = 1) {
    require_host(tensor);
    return {.count = static_cast<std::size_t>(tensor.numel() / parts),
            .dtype = dtype_of(tensor),
            .shape = shape};
  }

  void do_all_reduce(at::Tensor& tensor, ReduceOp op) override {
    const std::string shape = sizes_text(tensor);
    team_->all_reduce(tensor.data_ptr(), elements(tensor, shape), reduction_of(op));
  }
  void do_broadcast(at::Tensor& tensor, int root) override {
    const std::string shape = sizes_text(tensor);
    team_->broadcast(tensor.data_ptr(), elements(tensor, shape), root);
  }
  void do_all_gather(at::Tensor& out, const at::Tensor& tensor) override {
    const std::string shape = sizes_text(tensor);
    team_->all_gather(tensor.data_ptr(), out.data_ptr(), elements(tensor, shape));
  }
  void do_reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    const std::string shape = sizes_text(out);
    team_->reduce_scatter(in.data_ptr(), out.data_ptr(), elements(out, shape), reduction_of(op));
  }
  void do_all_to_all(at::Tensor& out, const at::Tensor& in) override {
    const std::string shape = sizes_text(in);
    team_->all_to_all(in.data_ptr(), out.data_ptr(), elements(in, shape, size()));
  }
  void do_send(const at::Tensor& tensor, int to) override {
    const std::string shape = sizes_text(tensor);
    team_->send(tensor.data_ptr(), elements(tensor, shape), to);
  }
  void do_receive(at::Tensor& tensor, int from) override {
    const std::string shape = sizes_text(tensor);
    team_->receive(tensor.data_ptr(), elements(tensor, shape), from);
  }
  void do_barrier() override { team_->barrier(); }

  std::unique_ptr<Work> do_start_mean(at::Tensor& bucket, Agreement& agreement) override {
    const std::string shape = sizes_text(bucket);
    const Contribution mine = agreement.mine();
    const shm::Contribution contribution{.scale = mine.scale, .count = mine.count};
    shm::SharedBuffer buffer;
    {
      const std::lock_guard lock(buckets_->mutex);
      const auto found = buckets_->live.find(bucket.data_ptr());
      if (found != buckets_->live.end()) buffer = found->second;
    }
    if (buffer.data() == nullptr) {
      team_->all_reduce(bucket.data_ptr(), elements(bucket, shape), shm::Reduction::mean,
                        contribution);
      return std::make_unique<DoneWork>();
    }
    const shm::Ticket ticket = team_->start_all_reduce(buffer, 0, elements(bucket, shape),
                                                       shm::Reduction::mean, contribution);
    return std::make_unique<ShmWork>(*team_, ticket);
  }

  std::unique_ptr<shm::Team> team_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<Buckets> buckets_ = std::make_shared<Buckets>();
};

/// An all-gather of strings between threads of one process.
class ThreadExchange {
 public:
  explicit ThreadExchange(std::size_t size) : size_(size) {}

  std::vector<std::string> operator()(std::size_t rank, std::string mine,
                                      std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    Round& round = rounds_[taken_[rank]++];
    round.texts.resize(size_);
    round.texts[rank] = std::move(mine);
    if (++round.present == size_) changed_.notify_all();
    if (!changed_.wait_for(lock, timeout, [&] { return round.present == size_; })) {
      throw Error(Code::timeout, text("thread rank ", rank, ": only ", round.present, " of ", size_,
                                      " threads came"));
    }
    return round.texts;
  }

 private:
  struct Round {
    std::vector<std::string> texts;
    std::size_t present = 0;
  };
  std::size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Round> rounds_;
  std::map<std::size_t, std::size_t> taken_;
};

}  // namespace

std::unique_ptr<Group> shm_group(const c10::intrusive_ptr<c10d::Store>& store,
                                 const BackendOptions& options) {
  int round = 0;
  const auto exchange = [&](const std::string& mine) {
    return exchange_strings(store, text("shm-", round++), options.rank, options.size, mine,
                            options.timeout);
  };
  auto team = std::make_unique<shm::Team>(
      exchange,
      shm::TeamOptions{.rank = options.rank, .size = options.size, .timeout = options.timeout});
  return std::make_unique<ShmGroup>(std::move(team), "shm", options.timeout);
}

std::vector<std::unique_ptr<Group>> local_groups(int size, LocalGroupOptions options) {
  if (size < 1)
    throw Error(Code::invalid_argument, text("local groups: ", size, " ranks, need at least 1"));
  const auto count = static_cast<std::size_t>(size);
  auto exchange = std::make_shared<ThreadExchange>(count);
  std::vector<std::unique_ptr<Group>> groups(count);
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto team = std::make_unique<shm::Team>(
            [&](std::string mine) { return (*exchange)(rank, std::move(mine), options.timeout); },
            shm::TeamOptions{
                .rank = static_cast<int>(rank), .size = size, .timeout = options.timeout});
        groups[rank] = std::make_unique<ShmGroup>(std::move(team), "threads", options.timeout);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return groups;
}

}  // namespace yoke::comm
