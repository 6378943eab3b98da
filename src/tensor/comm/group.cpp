#include "yoke/comm/group.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <ATen/Functions.h>

#include "yoke/core/error.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/text.hpp"

namespace yoke::comm {
namespace {

using core::text;

void require_dense(const at::Tensor& tensor, const char* op) {
  if (!tensor.defined()) throw Error(Code::invalid_argument, text(op, ": the tensor is undefined"));
  if (tensor.layout() != at::kStrided) {
    throw Error(Code::unsupported, text(op, ": the tensor is not dense"),
                "convert it with to_dense()");
  }
}

void require_rows(const at::Tensor& stacked, const at::Tensor& one, int size, const char* op) {
  if (stacked.numel() != one.numel() * size || stacked.scalar_type() != one.scalar_type()) {
    throw Error(Code::invalid_argument, text(op, ": ", shape_text(stacked), " does not hold ", size,
                                             " rows of ", shape_text(one)));
  }
}

/// Notes a collective in the telemetry for as long as it lives; a collective that throws stays
/// begun there, which is what the monitor wants to see of it.
class Recorded {
 public:
  Recorded(core::TelemetryWriter* telemetry, core::CollectiveKind kind, std::uint64_t sequence,
           const at::Tensor* tensor, int peer = -1)
      : telemetry_(telemetry) {
    if (telemetry_ == nullptr) return;
    core::CollectiveFacts facts{.kind = kind, .sequence = sequence, .peer = peer};
    if (tensor != nullptr) {
      facts.dtype = static_cast<std::uint32_t>(tensor->scalar_type());
      facts.bytes = static_cast<std::uint64_t>(tensor->nbytes());
    }
    ticket_ = telemetry_->collective_began(facts);
  }
  void ended() const noexcept {
    if (telemetry_ != nullptr) telemetry_->collective_ended(ticket_);
  }

 private:
  core::TelemetryWriter* telemetry_;
  std::uint64_t ticket_ = 0;
};

/// A started mean whose end is noted when it was waited for.
class RecordedWork final : public Work {
 public:
  RecordedWork(std::unique_ptr<Work> work, Recorded record)
      : work_(std::move(work)), record_(record) {}
  void wait() override {
    work_->wait();
    record_.ended();
  }

 private:
  std::unique_ptr<Work> work_;
  Recorded record_;
};

class AloneWork final : public Work {
 public:
  void wait() override {}
};

class AloneAgreement final : public Agreement {
 public:
  using Agreement::Agreement;
  double total_count() override { return mine().count; }
};

class AloneGroup final : public Group {
 public:
  AloneGroup() : Group(0, 1, "alone") {}
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept override {
    return std::chrono::hours(1);
  }
  [[nodiscard]] bool supports(Op op) const noexcept override { return op != Op::send_receive; }
  std::unique_ptr<Agreement> agree(Contribution mine) override {
    return std::make_unique<AloneAgreement>(mine);
  }

 private:
  void do_all_reduce(at::Tensor&, ReduceOp) override {}
  void do_broadcast(at::Tensor&, int) override {}
  void do_all_gather(at::Tensor& out, const at::Tensor& tensor) override {
    out.copy_(tensor.view(out.sizes()));
  }
  void do_reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp) override {
    out.copy_(in.view(out.sizes()));
  }
  void do_all_to_all(at::Tensor& out, const at::Tensor& in) override { out.copy_(in); }
  void do_send(const at::Tensor&, int) override {
    throw Error(Code::unsupported, "send: a group of one has no peer");
  }
  void do_receive(at::Tensor&, int) override {
    throw Error(Code::unsupported, "receive: a group of one has no peer");
  }
  void do_barrier() override {}

  std::unique_ptr<Work> do_start_mean(at::Tensor& bucket, Agreement& agreement) override {
    const Contribution mine = agreement.mine();
    if (mine.scale == 0.0) {
      bucket.zero_();
    } else if (mine.scale != mine.count) {
      bucket.mul_(mine.scale / mine.count);
    }
    return std::make_unique<AloneWork>();
  }
};

}  // namespace

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return text(sizes.empty() ? "scalar" : core::joined(sizes, "x"), " ",
              c10::toString(tensor.scalar_type()));
}

Group::Group(int rank, int size, std::string name)
    : rank_(rank), size_(size), name_(std::move(name)) {}

bool Group::supports(Op) const noexcept { return true; }

std::string Group::describe(const char* op, const at::Tensor& tensor) const {
  return text(op, " #", sequence_, " (",
              core::bytes_text(static_cast<std::uint64_t>(tensor.nbytes())), ": ",
              shape_text(tensor), ")");
}

void Group::require_rank(int peer, const char* op) const {
  if (peer < 0 || peer >= size_) {
    throw Error(Code::invalid_argument, text("rank ", rank_, ": ", op, ": there is no rank ", peer,
                                             " in a group of ", size_));
  }
}

void Group::all_reduce(at::Tensor& tensor, ReduceOp op) {
  require_dense(tensor, "all-reduce");
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::all_reduce, sequence_, &tensor);
  if (tensor.is_contiguous()) {  // another order in memory need not be the other ranks'
    do_all_reduce(tensor, op);
  } else {
    at::Tensor whole = tensor.contiguous();
    do_all_reduce(whole, op);
    tensor.copy_(whole);
  }
  record.ended();
}

void Group::broadcast(at::Tensor& tensor, int root) {
  require_dense(tensor, "broadcast");
  require_rank(root, "broadcast");
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::broadcast, sequence_, &tensor, root);
  if (tensor.is_contiguous()) {
    do_broadcast(tensor, root);
  } else {
    at::Tensor whole = tensor.contiguous();
    do_broadcast(whole, root);
    tensor.copy_(whole);
  }
  record.ended();
}

void Group::all_gather(at::Tensor& out, const at::Tensor& tensor) {
  require_dense(tensor, "all-gather");
  require_rows(out, tensor, size_, "all-gather");
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::all_gather, sequence_, &tensor);
  if (out.is_contiguous()) {
    do_all_gather(out, tensor.contiguous());
  } else {
    at::Tensor whole = at::empty(out.sizes(), out.options());
    do_all_gather(whole, tensor.contiguous());
    out.copy_(whole);
  }
  record.ended();
}

void Group::reduce_scatter(at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  require_dense(in, "reduce-scatter");
  require_rows(in, out, size_, "reduce-scatter");
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::reduce_scatter, sequence_, &in);
  if (out.is_contiguous()) {
    do_reduce_scatter(out, in.contiguous(), op);
  } else {
    at::Tensor whole = at::empty(out.sizes(), out.options());
    do_reduce_scatter(whole, in.contiguous(), op);
    out.copy_(whole);
  }
  record.ended();
}

void Group::all_to_all(at::Tensor& out, const at::Tensor& in) {
  require_dense(in, "all-to-all");
  if (out.sizes() != in.sizes() || out.scalar_type() != in.scalar_type() || in.dim() == 0 ||
      in.size(0) % size_ != 0) {
    throw Error(Code::invalid_argument,
                text("all-to-all: ", shape_text(in), " to ", shape_text(out),
                     ": need equal shapes whose first size divides by ", size_));
  }
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::all_to_all, sequence_, &in);
  if (out.is_contiguous()) {
    do_all_to_all(out, in.contiguous());
  } else {
    at::Tensor whole = at::empty(out.sizes(), out.options());
    do_all_to_all(whole, in.contiguous());
    out.copy_(whole);
  }
  record.ended();
}

void Group::send(const at::Tensor& tensor, int to) {
  require_dense(tensor, "send");
  require_rank(to, "send");
  const Recorded record(telemetry_, core::CollectiveKind::send, sequence_, &tensor, to);
  do_send(tensor.contiguous(), to);
  record.ended();
}

void Group::receive(at::Tensor& tensor, int from) {
  require_dense(tensor, "receive");
  require_rank(from, "receive");
  const Recorded record(telemetry_, core::CollectiveKind::receive, sequence_, &tensor, from);
  if (tensor.is_contiguous()) {
    do_receive(tensor, from);
  } else {
    at::Tensor whole = tensor.contiguous();
    do_receive(whole, from);
    tensor.copy_(whole);
  }
  record.ended();
}

void Group::barrier() {
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::barrier, sequence_, nullptr);
  do_barrier();
  record.ended();
}

std::vector<std::string> Group::all_gather_bytes(const std::string& mine) {
  const auto options = at::TensorOptions().dtype(at::kLong);
  at::Tensor length = at::full({1}, static_cast<std::int64_t>(mine.size()), options);
  at::Tensor lengths = at::empty({size_, 1}, options);
  all_gather(lengths, length);
  const std::int64_t longest = lengths.max().item<std::int64_t>();
  at::Tensor row = at::zeros({longest}, at::kByte);
  std::memcpy(row.data_ptr(), mine.data(), mine.size());
  at::Tensor rows = at::empty({size_, longest}, at::kByte);
  if (longest > 0) all_gather(rows, row);
  std::vector<std::string> all;
  for (int rank = 0; rank < size_; ++rank) {
    const auto count = static_cast<std::size_t>(lengths[rank].item<std::int64_t>());
    all.emplace_back(static_cast<const char*>(rows.data_ptr()) + rank * longest, count);
  }
  return all;
}

at::Tensor Group::empty_bucket(std::int64_t numel, const at::TensorOptions& options) {
  return at::empty({numel}, options);
}

std::unique_ptr<Work> Group::start_mean(at::Tensor& bucket, Agreement& agreement) {
  next_sequence();
  const Recorded record(telemetry_, core::CollectiveKind::all_reduce, sequence_, &bucket);
  std::unique_ptr<Work> work = do_start_mean(bucket, agreement);
  if (telemetry_ == nullptr) return work;
  return std::make_unique<RecordedWork>(std::move(work), record);
}

std::unique_ptr<Group> alone_group() { return std::make_unique<AloneGroup>(); }

}  // namespace yoke::comm
