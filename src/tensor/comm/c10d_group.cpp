#include "c10d_group.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include <ATen/Functions.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::comm {
namespace {

using core::text;
using Bytes = std::vector<std::uint8_t>;

c10d::ReduceOp reduce_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return c10d::ReduceOp::SUM;
    case ReduceOp::product: return c10d::ReduceOp::PRODUCT;
    case ReduceOp::minimum: return c10d::ReduceOp::MIN;
    case ReduceOp::maximum: return c10d::ReduceOp::MAX;
  }
  return c10d::ReduceOp::SUM;
}

Bytes bytes_of(const std::string& whole) { return {whole.begin(), whole.end()}; }

bool speaks_of_time(const std::string& message) {
  return message.find("imed out") != std::string::npos ||
         message.find("imeout") != std::string::npos;
}

constexpr std::size_t kCounts = 4;

// How long a rank that failed waits for the others to say where they are. A rank that stands still
// says nothing.
constexpr std::chrono::milliseconds kPresenceLimit{1'500};

}  // namespace

C10dGroup::C10dGroup(c10::intrusive_ptr<c10d::Backend> backend,
                     c10::intrusive_ptr<c10d::Store> store, C10dGroupOptions options,
                     Group* control)
    : Group(backend->getRank(), backend->getSize(), options.name),
      backend_(std::move(backend)),
      store_(std::move(store)),
      options_(std::move(options)),
      control_(control) {}

C10dGroup::~C10dGroup() {
  // Gloo has no shutdown() in 2.6, so it is called where the class has it; a destructor must not
  // throw.
  const auto leave = [](auto& backend) {
    if constexpr (requires { backend.shutdown(); }) backend.shutdown();
  };
  try {
    leave(*backend_);
  } catch (const std::exception&) {
    // A peer that is already gone: nothing is left to leave.
  }
}

bool C10dGroup::supports(Op) const noexcept { return true; }

std::chrono::milliseconds C10dGroup::wait_limit() const {
  // NCCL's work blocks the host when it is given a limit; its own watchdog holds the limit instead.
  return backend() == "nccl" ? std::chrono::milliseconds(0) : options_.timeout;
}

std::string C10dGroup::absent_ranks(const std::string& call) noexcept try {
  const auto key = [](int rank) { return text("presence/", rank); };
  store_->set(key(rank()), bytes_of(text(sequence(), " ", call)));
  std::vector<std::string> absent;
  const auto deadline = std::chrono::steady_clock::now() + kPresenceLimit;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    // Asked again and again, for a wait of the store that ends in vain writes to the terminal.
    while (!store_->check({key(peer)}) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!store_->check({key(peer)})) {
      absent.push_back(text("rank ", peer, " did not come"));
      continue;
    }
    const Bytes bytes = store_->get(key(peer));
    const std::string at(bytes.begin(), bytes.end());
    if (at != text(sequence(), " ", call)) absent.push_back(text("rank ", peer, " is at #", at));
  }
  return absent.empty() ? "every rank came" : core::joined(absent);
} catch (const std::exception&) {
  return "the store on rank 0 is gone, so rank 0 may be";
}

void C10dGroup::fail(const std::string& call, const std::exception& error) {
  const std::string message = error.what();
  const std::string absent = absent_ranks(call);
  const std::string first_line = message.substr(0, message.find('\n'));
  const Code code = speaks_of_time(message) ? Code::timeout : Code::peer_lost;
  const std::string limit =
      code == Code::timeout
          ? text(" within ", static_cast<double>(options_.timeout.count()) / 1000.0, " s")
          : "";
  throw Error(
      code,
      text("rank ", rank(), ": ", call, " over ", backend(), ": no result", limit, ": ", absent),
      code == Code::timeout ? "look at the ranks named; raise the timeout if they are only slow"
                            : "look at the ranks named: they failed first")
      .caused_by(std::runtime_error(first_line));
}

void C10dGroup::check_call(const std::string& call) {
  if (!options_.check_calls || size() == 1) return;
  const std::uint64_t number = ++checks_;
  const auto key = [number](int rank) { return text("check/", number, "/", rank); };
  store_->set(key(rank()), bytes_of(call));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    store_->wait({key(peer)}, options_.timeout);
    const Bytes bytes = store_->get(key(peer));
    const std::string theirs(bytes.begin(), bytes.end());
    if (theirs != call) {
      throw Error(
          Code::invalid_argument,
          text("rank ", rank(), ": ranks disagree: rank ", std::min(rank(), peer), " calls ",
               rank() < peer ? call : theirs, ", rank ", std::max(rank(), peer), " calls ",
               rank() < peer ? theirs : call),
          "make every rank call the same collectives in the same order with the same shapes");
    }
  }
}

void C10dGroup::finish(const char* op, const at::Tensor& tensor,
                       const std::function<c10::intrusive_ptr<c10d::Work>()>& start) {
  const std::string call = describe(op, tensor);
  try {
    check_call(call);
    start()->wait(wait_limit());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(call, error);
  }
}

void C10dGroup::do_all_reduce(at::Tensor& tensor, ReduceOp op) {
  finish("all-reduce", tensor, [&] {
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op(op);
    std::vector<at::Tensor> tensors{tensor};
    return backend_->allreduce(tensors, options);
  });
}

void C10dGroup::do_broadcast(at::Tensor& tensor, int root) {
  finish("broadcast", tensor, [&] {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> tensors{tensor};
    return backend_->broadcast(tensors, options);
  });
}

void C10dGroup::do_all_gather(at::Tensor& out, const at::Tensor& tensor) {
  finish("all-gather", tensor, [&] {
    std::vector<std::vector<at::Tensor>> outputs(1);
    at::Tensor rows = out.view({size(), tensor.numel()});
    for (int rank = 0; rank < size(); ++rank) outputs[0].push_back(rows[rank]);
    std::vector<at::Tensor> inputs{tensor.view({tensor.numel()})};
    return backend_->allgather(outputs, inputs);
  });
}

void C10dGroup::do_reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  if (backend() == "nccl") {
    finish("reduce-scatter", in, [&] {
      c10d::ReduceScatterOptions options;
      options.reduceOp = reduce_op(op);
      at::Tensor flat_out = out.view({out.numel()});
      at::Tensor flat_in = in.view({in.numel()});
      return backend_->_reduce_scatter_base(flat_out, flat_in, options);
    });
    return;
  }
  // Gloo gained it after 2.6; by an all-reduce it works in all versions, at `size` times the bytes.
  at::Tensor whole = in.clone();
  do_all_reduce(whole, op);
  out.copy_(whole.view({size(), out.numel()})[rank()].view(out.sizes()));
}

void C10dGroup::do_all_to_all(at::Tensor& out, const at::Tensor& in) {
  finish("all-to-all", in, [&] {
    at::Tensor from = in;
    std::vector<std::int64_t> equal;
    return backend_->alltoall_base(out, from, equal, equal);
  });
}

void C10dGroup::do_send(const at::Tensor& tensor, int to) {
  finish("send", tensor, [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->send(tensors, to, /*tag=*/0);
  });
}

void C10dGroup::do_receive(at::Tensor& tensor, int from) {
  finish("receive", tensor, [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->recv(tensors, from, /*tag=*/0);
  });
}

void C10dGroup::do_barrier() {
  if (control_ != nullptr) {
    control_->barrier();
    return;
  }
  at::Tensor token = at::zeros({1});
  do_all_reduce(token, ReduceOp::sum);
}

class C10dGroup::ControlAgreement final : public Agreement {
 public:
  ControlAgreement(Group& control, at::Tensor total, Contribution mine)
      : Agreement(mine),
        total_(std::move(total)),
        inner_(control.agree({})),
        size_(control.size()) {
    *total_.data_ptr<double>() = mine.count;
    work_ = control.start_mean(total_, *inner_);
  }
  double total_count() override {
    if (work_) {
      work_->wait();
      work_.reset();
    }
    return *total_.data_ptr<double>() * size_;  // the mean of the counts, times the ranks
  }

 private:
  at::Tensor total_;  // [1] double
  std::unique_ptr<Agreement> inner_;
  std::unique_ptr<Work> work_;
  int size_;
};

class C10dGroup::OwnAgreement final : public Agreement {
 public:
  OwnAgreement(C10dGroup& group, Contribution mine) : Agreement(mine), group_(group) {
    total_ = at::full({1}, mine.count, at::TensorOptions().dtype(at::kDouble));
    std::vector<at::Tensor> tensors{total_};
    call_ = group.describe("count", total_);
    try {
      work_ = group.backend_->allreduce(tensors);
    } catch (const std::exception& error) {
      group.fail(call_, error);
    }
  }
  double total_count() override {
    if (work_) {
      try {
        work_->wait(group_.wait_limit());
      } catch (const std::exception& error) {
        group_.fail(call_, error);
      }
      work_.reset();
    }
    return total_[0].item<double>();
  }

 private:
  C10dGroup& group_;
  std::string call_;
  at::Tensor total_;  // [1] double
  c10::intrusive_ptr<c10d::Work> work_;
};

std::unique_ptr<Agreement> C10dGroup::agree(Contribution mine) {
  if (control_ != nullptr) {
    // Shared memory is made once and used in turn: an agreement is over before the fourth after it
    // begins.
    if (counts_.size() < kCounts)
      counts_.push_back(control_->empty_bucket(1, at::TensorOptions().dtype(at::kDouble)));
    at::Tensor& total = counts_[agreements_++ % kCounts];
    return std::make_unique<ControlAgreement>(*control_, total, mine);
  }
  next_sequence();
  return std::make_unique<OwnAgreement>(*this, mine);
}

class C10dGroup::MeanWork final : public Work {
 public:
  MeanWork(C10dGroup& group, c10::intrusive_ptr<c10d::Work> work, std::string call)
      : group_(group), work_(std::move(work)), call_(std::move(call)) {}
  void wait() override {
    try {
      work_->wait(group_.wait_limit());
    } catch (const std::exception& error) {
      group_.fail(call_, error);
    }
  }

 private:
  C10dGroup& group_;
  c10::intrusive_ptr<c10d::Work> work_;
  std::string call_;
};

std::unique_ptr<Work> C10dGroup::do_start_mean(at::Tensor& bucket, Agreement& agreement) {
  const double scale = agreement.mine().scale;
  const double total = agreement.total_count();
  const double factor = total == 0.0 ? 0.0 : scale / total;
  std::string call = describe("mean", bucket);
  try {
    check_call(call);
    c10d::AllreduceOptions options;
    if (factor == 0.0) {
      bucket.zero_();  // not a multiplication: the numbers may be NaN
    } else if (factor != 1.0 && backend() == "nccl" && size() > 1) {
      // NCCL multiplies while it reads, which saves a pass over the bucket.
      options.reduceOp = c10d::makeNCCLPreMulSum(factor);
    } else if (factor != 1.0) {
      bucket.mul_(factor);
    }
    std::vector<at::Tensor> tensors{bucket};
    return std::make_unique<MeanWork>(*this, backend_->allreduce(tensors, options),
                                      std::move(call));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(call, error);
  }
}

}  // namespace yoke::comm
