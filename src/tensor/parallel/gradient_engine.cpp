#include "yoke/parallel/gradient_engine.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_foreach_copy.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "agreement.hpp"
#include "buckets.hpp"
#include "step_count.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/comm/row_weight.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using core::text;
namespace autograd = torch::autograd;

constexpr int kNoTask = -1;
constexpr int kIdleTask = -2;              // a step of idle_step(), without a graph
constexpr std::uint64_t kCheckEvery = 64;  // forward passes between looks for replaced parameters

/// One parameter and what backward has done to it.
struct Slot {
  std::string name;
  at::Tensor parameter;
  std::shared_ptr<autograd::Node>
      accumulator{};  // kept alive, or autograd makes a new one without our hook
  std::uintptr_t hook = 0;
  std::size_t bucket = 0;
  std::size_t place = 0;
  std::size_t parts = 0;      // gradients in the running backward
  bool used = false;          // since the last synchronised step
  bool had_gradient = false;  // when its bucket was sent
};

/// The micro-batches since the last synchronised step.
///
/// Note [Exact means]
/// A user's loss is a mean over its own n rows. With micro-batches m and ranks r the exact gradient
/// is sum(n_rm g_rm) / sum(n_rm). Autograd only adds gradients up, so the node on forward's outputs
/// multiplies what comes in by n / e, where e, the estimate, is the first count of the window: the
/// accumulated gradient is then G_r = sum_m(n_rm / e_r g_rm), and the mean over ranks sum_r(e_r
/// G_r) / sum_r(n_r) is the exact one. With equal counts every factor is 1 and nothing is
/// multiplied. Torch's convention is that micro-batches add up (users divide the loss by their
/// number K), so the result is multiplied by K as well.
struct Window {
  double estimate = 0;
  double total = 0;
  double passes = 0;
};

}  // namespace

struct GradientEngine::State : std::enable_shared_from_this<GradientEngine::State> {
  comm::Group* group = nullptr;
  comm::Group* host_group = nullptr;
  std::function<NamedTensors()> list_parameters;
  std::function<NamedTensors()> list_buffers;
  DistributedDataParallelOptions options;

  std::recursive_mutex
      mutex;  // hooks run on autograd's threads; the end of backward may run inside a hook's call
  std::vector<Slot> slots;
  std::optional<c10::Stream> stream;  // on which the accumulators run; nothing on the CPU
  std::vector<Bucket> buckets;
  at::Tensor arming_leaf;  // makes outputs require grad that no parameter touches

  bool synchronising = true;  // what a forward begins with now
  std::int64_t forward_rows = 1;
  bool forward_pending = false;  // a synchronising forward waits for its backward
  std::uint64_t forwards = 0;

  int task = kNoTask;  // the graph task that is armed
  // Lives in the armed task's final callback, so it is gone when the task ended by an exception.
  std::weak_ptr<int> task_alive;
  bool task_synchronises = false;
  std::optional<double> task_count;
  double task_factor = 1.0;
  Window window;
  std::size_t next_bucket = 0;
  std::unique_ptr<comm::Agreement> agreement;
  std::vector<std::size_t> arrival;  // parameters in the order of their gradients, first step only

  EngineReport report;

  // Setting up
  void adopt(const NamedTensors& named);
  void hang_hooks();
  void follow_stream();
  void lay_out(const std::vector<std::size_t>& order);
  void require_unchanged(const char* when);

  // One backward
  double begin_or_join(bool synchronise, double rows, int current_task);
  void begin(bool synchronise, int current_task);
  void count(double rows);
  void gradient_arrived(std::size_t index);
  [[nodiscard]] bool is_mean_already() const;
  [[nodiscard]] bool any_sparse(const Bucket& bucket) const;
  void note_used(Bucket& bucket);
  void send(Bucket& bucket);
  void end();
  void synchronise();
  void settle_unused();
  void learn_order();
  void close_window();
  void abandon();
};

namespace {

/// The identity on forward's outputs whose backward tells the engine that a backward has begun.
struct ArmNode final : autograd::Node {
  std::weak_ptr<GradientEngine::State> engine;
  std::function<double(GradientEngine::State&)> arrived;

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    double factor = 1.0;
    if (const auto state = engine.lock()) factor = arrived(*state);
    autograd::variable_list out(std::move(gradients));
    if (factor != 1.0) {
      for (at::Tensor& gradient : out) {
        if (!gradient.defined()) continue;
        // Not a multiplication for 0: the mean over no rows is NaN, and so is its gradient.
        gradient = factor == 0.0 ? at::zeros_like(gradient) : gradient * factor;
      }
    }
    out.resize(num_outputs());  // the arming leaf gets nothing
    return out;
  }
};

// The tensor behind an output, without its history but with its version counter: what autograd
// saved of the output still notices a change in place.
at::Tensor same_data(const at::Tensor& output) {
  const c10::VariableVersion& version = output.unsafeGetTensorImpl()->version_counter();
  return at::Tensor(output.unsafeGetTensorImpl()->shallow_copy_and_detach(
      version, /*allow_tensor_metadata_change=*/false));
}

// Convolutions give gradients of 1x1 kernels strides that name the same memory order in other
// numbers (a dimension of one element has no meaningful stride). With unequal numbers the foreach
// copy falls back to a launch per tensor, so the view takes the gradient's, once.
void follow_strides(at::Tensor& view, const at::Tensor& gradient) {
  if (view.strides() == gradient.strides() || view.sizes() != gradient.sizes()) return;
  for (std::int64_t d = 0; d < view.dim(); ++d) {
    if (view.size(d) != 1 && view.stride(d) != gradient.stride(d))
      return;  // another order: the copy reorders
  }
  at::Tensor same = at::empty({0}, view.options());
  same.set_(view.storage(), view.storage_offset(), gradient.sizes(), gradient.strides());
  view = same;
}

// Plain memory to plain memory of the same order. memcpy's string moves write a line without
// reading it first, which torch's copy loop does: a tenth of a step whose gradients are 23 MB.
bool copy_plainly(const at::Tensor& to, const at::Tensor& from) {
  if (from.layout() != at::kStrided || !from.is_cpu() || to.scalar_type() != from.scalar_type() ||
      to.strides() != from.strides() || from.is_neg() || !to.is_non_overlapping_and_dense()) {
    return false;
  }
  std::memcpy(to.data_ptr(), from.data_ptr(), to.nbytes());
  return true;
}

void copy_all(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  if (to.empty()) return;
  if (to.size() > 1 && !to[0].is_cpu()) {
    // Nothing here is differentiated, and autograd's look at each of them takes longer than the
    // launches.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return at::_foreach_copy_(to, from);
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!copy_plainly(to[i], from[i])) to[i].copy_(from[i]);
  }
}

// The current one of a card; nothing for the CPU.
std::optional<c10::Stream> stream_of(at::Device device) {
  if (device.is_cpu()) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

bool is_partial_task() {
  // torch::autograd::grad(), or backward with inputs=: only some nodes run.
  const auto* info = autograd::get_current_graph_task_exec_info();
  return info != nullptr && !info->empty();
}

}  // namespace

GradientEngine::GradientEngine(comm::Group& group, comm::Group& host_group,
                               std::function<NamedTensors()> parameters,
                               std::function<NamedTensors()> buffers, at::Device device,
                               DistributedDataParallelOptions options)
    : state_(std::make_shared<State>()) {
  State& state = *state_;
  state.group = &group;
  state.host_group = &host_group;
  state.list_parameters = std::move(parameters);
  state.list_buffers = std::move(buffers);
  state.options = options;
  state.arming_leaf = at::zeros({0}).set_requires_grad(true);

  const NamedTensors named = state.list_parameters();
  const NamedTensors named_buffers = state.list_buffers();
  if (options.check_models) require_same_models(host_group, named, named_buffers);
  require_on_device(named, device, group.rank());
  require_on_device(named_buffers, device, group.rank());
  broadcast_from_rank_0(group, named);
  broadcast_from_rank_0(group, named_buffers);
  state.adopt(named);
  // Backward reaches the last layers first, so until the order is known it is guessed to be the
  // registration's reversed.
  std::vector<std::size_t> order(state.slots.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  state.lay_out(order);
}

GradientEngine::~GradientEngine() {
  for (Slot& slot : state_->slots) slot.accumulator->del_post_hook(slot.hook);
}

void GradientEngine::State::adopt(const NamedTensors& named) {
  std::vector<const void*> seen;
  for (const auto& [name, parameter] : named) {
    if (!parameter.requires_grad()) continue;
    const void* identity = parameter.unsafeGetTensorImpl();
    if (std::find(seen.begin(), seen.end(), identity) != seen.end())
      continue;  // shared between layers
    seen.push_back(identity);
    if (!at::isFloatingType(parameter.scalar_type())) {
      throw Error(Code::unsupported,
                  text("wrap the model: ", name, " is ", c10::toString(parameter.scalar_type())),
                  "parameters that take gradients must be float64, float32, float16 or bfloat16");
    }
    slots.push_back({.name = name, .parameter = parameter});
  }
  if (slots.empty()) {
    throw Error(Code::invalid_argument, "wrap the model: it has no parameter that requires grad",
                "do not wrap it, or unfreeze a parameter before wrapping");
  }
  hang_hooks();
}

// An accumulator runs on the stream that was current when it was made.
void GradientEngine::State::hang_hooks() {
  stream = stream_of(slots[0].parameter.device());
  for (std::size_t index = 0; index < slots.size(); ++index) {
    const std::weak_ptr<State> weak = weak_from_this();
    slots[index].accumulator = autograd::impl::grad_accumulator(slots[index].parameter);
    slots[index].hook =
        slots[index].accumulator->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
            [weak, index](const autograd::variable_list& outputs,
                          const autograd::variable_list& gradients) {
              const auto state = weak.lock();
              if (state && !gradients.empty() && gradients[0].defined())
                state->gradient_arrived(index);
              return outputs;
            }));
  }
}

// Makes the accumulators anew for a forward on another stream than before: a step that is captured
// in a CUDA graph must not leave the stream under capture.
void GradientEngine::State::follow_stream() {
  if (stream_of(slots[0].parameter.device()) == stream) return;
  for (Slot& slot : slots) {
    slot.accumulator->del_post_hook(slot.hook);
    slot.accumulator.reset();  // autograd holds it weakly, so the next one is new
  }
  hang_hooks();
}

void GradientEngine::State::lay_out(const std::vector<std::size_t>& order) {
  std::vector<at::Tensor> parameters;
  for (const Slot& slot : slots) parameters.push_back(slot.parameter);
  // Alone there is nothing to overlap with, and every bucket costs launches.
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  const BucketLimits limits = group->size() == 1
                                  ? BucketLimits{kNoLimit, kNoLimit}
                                  : BucketLimits{options.first_bucket_bytes, options.bucket_bytes};
  buckets = make_buckets(*group, parameters, order, limits);
  report.buckets = buckets.size();
  report.bucket_bytes = 0;
  report.order.clear();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    report.bucket_bytes += buckets[b].flat.nbytes();
    for (std::size_t place = 0; place < buckets[b].parameters.size(); ++place) {
      Slot& slot = slots[buckets[b].parameters[place]];
      slot.bucket = b;
      slot.place = place;
      report.order.push_back(slot.name);
    }
  }
}

void GradientEngine::State::require_unchanged(const char* when) {
  std::unordered_map<std::string, const void*> now;
  std::size_t trainable = 0;
  std::vector<const void*> seen;
  for (const auto& [name, parameter] : list_parameters()) {
    now[name] = parameter.unsafeGetTensorImpl();
    if (parameter.requires_grad() && std::find(seen.begin(), seen.end(), now[name]) == seen.end()) {
      seen.push_back(now[name]);
      ++trainable;
    }
  }
  const std::string hint = "wrap the module after its last change, or build a new wrapper";
  for (const Slot& slot : slots) {
    const auto found = now.find(slot.name);
    if (found == now.end() || found->second != slot.parameter.unsafeGetTensorImpl()) {
      throw Error(
          Code::invalid_argument,
          text("rank ", group->rank(), ": ", when,
               ": the module changed after wrapping: ", slot.name,
               found == now.end() ? " is gone"
                                  : " is another tensor now, whose gradient is not averaged"),
          hint);
    }
    if (!slot.parameter.requires_grad()) {
      throw Error(Code::invalid_argument,
                  text("rank ", group->rank(), ": ", when,
                       ": the module changed after wrapping: ", slot.name, " was frozen"),
                  hint);
    }
  }
  if (trainable != slots.size()) {
    throw Error(
        Code::invalid_argument,
        text("rank ", group->rank(), ": ", when, ": the module changed after wrapping: it has ",
             trainable, " trainable parameters, the wrapper knows ", slots.size()),
        hint);
  }
}

void GradientEngine::before_forward(std::int64_t rows) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.forward_rows = rows;
  const auto counted = static_cast<double>(rows);
  comm::set_row_weight(state.window.estimate > 0 ? state.window.estimate : counted);
  if (!at::GradMode::is_enabled()) return;
  state.follow_stream();
  if (state.forwards++ % kCheckEvery == 0) state.require_unchanged("forward");
  state.forward_pending = state.synchronising;
}

std::vector<at::Tensor> GradientEngine::arm(std::vector<at::Tensor> outputs) {
  State& state = *state_;
  if (!at::GradMode::is_enabled()) return outputs;
  std::vector<std::size_t> armed;
  bool any_needs_grad = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !at::isFloatingType(outputs[i].scalar_type())) continue;
    armed.push_back(i);
    any_needs_grad = any_needs_grad || outputs[i].requires_grad();
  }
  if (armed.empty()) return outputs;

  const bool synchronise = state.synchronising;
  const auto rows = static_cast<double>(state.forward_rows);
  const std::shared_ptr<ArmNode> node(new ArmNode(), autograd::deleteNode);
  node->engine = state_;
  node->arrived = [synchronise, rows](State& engine) {
    return engine.begin_or_join(synchronise, rows, autograd::get_current_graph_task_id());
  };
  autograd::edge_list edges;
  for (const std::size_t i : armed) {
    edges.push_back(outputs[i].requires_grad() ? autograd::impl::gradient_edge(outputs[i])
                                               : autograd::Edge());
  }
  if (!any_needs_grad) edges.push_back(autograd::impl::gradient_edge(state.arming_leaf));
  node->set_next_edges(std::move(edges));
  for (const std::size_t i : armed) {
    if (any_needs_grad && !outputs[i].requires_grad()) {
      node->add_input_metadata(
          outputs[i]);  // keeps places and edges in step; this one passes unarmed
      continue;
    }
    at::Tensor passed = same_data(outputs[i]);
    autograd::set_history(passed, node);
    outputs[i] = std::move(passed);
  }
  return outputs;
}

double GradientEngine::State::begin_or_join(bool synchronise_now, double rows, int current_task) {
  const std::lock_guard lock(mutex);
  if (is_partial_task()) {
    const auto& info = *autograd::get_current_graph_task_exec_info();
    const bool accumulates = std::any_of(slots.begin(), slots.end(), [&info](const Slot& slot) {
      const auto found = info.find(slot.accumulator.get());
      return found != info.end() && found->second.needed_;
    });
    if (!accumulates) return 1.0;  // grad() of some tensor: no gradient of ours comes of it
  }
  // Another task while the armed one still runs is a nested one (recomputation): it belongs to the
  // armed one.
  if (task != current_task && task_alive.expired()) {
    begin(synchronise_now, current_task);
    const std::weak_ptr<State> weak = weak_from_this();
    auto alive = std::make_shared<int>(current_task);
    task_alive = alive;
    autograd::Engine::get_default_engine().queue_callback(
        [weak, alive = std::move(alive)]() mutable {
          if (const auto state = weak.lock()) state->end();
          alive.reset();
        });
  }
  task_synchronises = task_synchronises || synchronise_now;
  count(step_count().value_or(rows));
  return task_factor;
}

void GradientEngine::State::begin(bool synchronise_now, int current_task) {
  if (task != kNoTask) abandon();  // the last backward ended by an exception
  task = current_task;
  task_synchronises = synchronise_now;
  task_count.reset();
  task_factor = 1.0;
  next_bucket = 0;
  for (Bucket& bucket : buckets) {
    bucket.missing = bucket.parameters.size();
    bucket.sent = false;
  }
  for (Slot& slot : slots) slot.parts = 0;
  arrival.clear();
}

void GradientEngine::State::count(double rows) {
  if (task_count) {
    if (*task_count == rows) return;
    throw Error(Code::invalid_argument,
                text("rank ", group->rank(), ": backward: two forward passes with ", *task_count,
                     " and ", rows, " rows in one backward"),
                "call backward for each, or join the losses by yoke::mean(sum, count)");
  }
  task_count = rows;
  if (window.estimate == 0.0 && rows > 0.0) window.estimate = rows;
  window.total += rows;
  window.passes += 1.0;
  task_factor = rows == 0.0 ? 0.0 : rows / window.estimate;  // Note [Exact means]
}

void GradientEngine::State::gradient_arrived(std::size_t index) {
  const std::lock_guard lock(mutex);
  Slot& slot = slots[index];
  slot.used = true;
  if (task == kNoTask) {
    if (!forward_pending) return;  // a backward of the bare module
    // The loss reached the parameters past forward's outputs (double backward, a kept activation).
    begin_or_join(true, static_cast<double>(forward_rows), autograd::get_current_graph_task_id());
  }
  if (!task_synchronises) return;
  Bucket& bucket = buckets[slot.bucket];
  if (slot.parts++ == 0) {
    --bucket.missing;
    if (!report.order_learnt) arrival.push_back(index);
  } else if (bucket.sent) {
    throw Error(
        Code::unsupported,
        text("rank ", group->rank(), ": backward: ", slot.name,
             " got another gradient after its bucket was sent; in the first step it got one only"),
        "let the first step use the model as the others do, or wrap with {.bucket_bytes} larger "
        "than the model");
  }
  // The first step only watches: which parameters get gradients in several parts, and in which
  // order they come.
  if (!report.order_learnt) return;
  while (next_bucket < buckets.size() && buckets[next_bucket].missing == 0 &&
         !buckets[next_bucket].deferred) {
    send(buckets[next_bucket++]);
    ++report.early_collectives;
  }
  group->progress();
}

// One rank whose micro-batches were of one size: its gradients are the mean already, and stay where
// autograd has put them.
bool GradientEngine::State::is_mean_already() const {
  return group->size() == 1 && window.estimate * window.passes == window.total;
}

bool GradientEngine::State::any_sparse(const Bucket& bucket) const {
  return std::ranges::any_of(bucket.parameters, [&](std::size_t index) {
    const at::Tensor& gradient = slots[index].parameter.grad();
    return gradient.defined() && gradient.is_sparse();
  });
}

void GradientEngine::State::note_used(Bucket& bucket) {
  if (!bucket.mask.defined()) return;
  if (std::ranges::all_of(slots, [](const Slot& slot) { return slot.used; })) {
    bucket.mask.fill_(1.0);
    return;
  }
  at::Tensor used = at::empty({static_cast<std::int64_t>(slots.size())}, at::kFloat);
  auto* flags = used.data_ptr<float>();
  for (std::size_t i = 0; i < slots.size(); ++i) flags[i] = slots[i].used ? 1.0F : 0.0F;
  bucket.mask.copy_(used);
}

void GradientEngine::State::send(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  if (is_mean_already() && !any_sparse(bucket)) {
    note_used(bucket);
    bucket.sent = true;
    return;
  }
  if (!agreement) {
    agreement = group->agree({.scale = window.estimate * window.passes, .count = window.total});
  }
  std::vector<at::Tensor> to;
  std::vector<at::Tensor> from;
  for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
    Slot& slot = slots[bucket.parameters[place]];
    at::Tensor& view = bucket.views[place];
    const at::Tensor& gradient = slot.parameter.grad();
    slot.had_gradient = gradient.defined();
    if (!gradient.defined()) {
      view.zero_();
    } else if (gradient.is_sparse()) {
      view.copy_(gradient.to_dense());
    } else if (gradient.data_ptr() != view.data_ptr()) {
      follow_strides(view, gradient);
      to.push_back(view);
      from.push_back(gradient.requires_grad() ? gradient.detach() : gradient);
    }
  }
  copy_all(to, from);
  from.clear();
  for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
    Slot& slot = slots[bucket.parameters[place]];
    if (slot.had_gradient) slot.parameter.mutable_grad() = bucket.views[place];
  }
  note_used(bucket);
  bucket.work = group->start_mean(bucket.flat, *agreement);
  bucket.sent = true;
  ++report.collectives;
}

void GradientEngine::State::end() {
  const std::lock_guard lock(mutex);
  if (task == kNoTask) return;
  if (task_synchronises) {
    synchronise();
    forward_pending = false;
  }
  task = kNoTask;
}

void GradientEngine::State::synchronise() {
  const bool some_unused =
      std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return !slot.used; });
  // A replaced parameter looks like an unused one: nothing is sent before that is ruled out.
  if (some_unused && task != kIdleTask) require_unchanged("backward");
  while (next_bucket < buckets.size()) send(buckets[next_bucket++]);
  for (Bucket& bucket : buckets) {
    if (bucket.work) bucket.work->wait();
    bucket.work.reset();
  }
  ++report.steps;
  report.unused.clear();
  report.unused_here.clear();
  if (some_unused) settle_unused();
  if (!report.order_learnt) learn_order();
  close_window();
}

void GradientEngine::State::settle_unused() {
  const at::NoGradGuard no_grad;
  const at::Tensor mask =
      buckets.back().mask.to(at::kCPU, at::kFloat);  // waits for the card: only in this case
  const auto* used_anywhere = mask.data_ptr<float>();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    if (slot.used) continue;
    report.unused_here.push_back(slot.name);
    if (used_anywhere[i] > 0.0F) {
      slot.parameter.mutable_grad() = buckets[slot.bucket].views[slot.place];
    } else {
      report.unused.push_back(slot.name);
    }
  }
}

void GradientEngine::State::learn_order() {
  const at::NoGradGuard no_grad;
  const auto numel = static_cast<std::int64_t>(slots.size());
  at::Tensor order =
      at::full({numel, 2}, -1, at::TensorOptions().dtype(at::kLong));  // [place] index, parts
  auto rows = order.accessor<std::int64_t, 2>();
  std::vector<bool> placed(slots.size(), false);
  std::int64_t place = 0;
  const auto put = [&](std::size_t index) {
    rows[place][0] = static_cast<std::int64_t>(index);
    rows[place][1] = static_cast<std::int64_t>(slots[index].parts);
    placed[index] = true;
    ++place;
  };
  // Rank 0 had no rows in this step: it has seen nothing to learn from, and says so by the -1.
  const bool nothing_seen = arrival.empty();
  for (const std::size_t index : arrival) put(index);
  for (std::size_t index = slots.size(); index-- > 0 && !nothing_seen;) {
    if (!placed[index]) put(index);  // unused so far: in the order guessed
  }
  host_group->broadcast(order, 0);
  if (rows[0][0] < 0) return;

  std::vector<std::size_t> agreed;
  std::vector<std::size_t> parts(slots.size());
  for (std::int64_t i = 0; i < numel; ++i) {
    agreed.push_back(static_cast<std::size_t>(rows[i][0]));
    parts[agreed.back()] = static_cast<std::size_t>(rows[i][1]);
  }
  std::vector<Bucket> old = std::move(buckets);
  std::vector<at::Tensor> gradients(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const at::Tensor& gradient = slots[i].parameter.grad();
    const at::Tensor& view = old[slots[i].bucket].views[slots[i].place];
    if (gradient.defined() && gradient.data_ptr() == view.data_ptr()) gradients[i] = view;
  }
  lay_out(agreed);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!gradients[i].defined()) continue;
    at::Tensor& view = buckets[slots[i].bucket].views[slots[i].place];
    view.copy_(gradients[i]);
    slots[i].parameter.mutable_grad() = view;
  }
  for (Bucket& bucket : buckets) {
    bucket.deferred = std::any_of(bucket.parameters.begin(), bucket.parameters.end(),
                                  [&](std::size_t index) { return parts[index] > 1; });
  }
  report.order_learnt = true;
}

void GradientEngine::State::close_window() {
  window = {};
  agreement.reset();
  for (Slot& slot : slots) slot.used = false;
}

void GradientEngine::State::abandon() {
  // What was started ends on every rank that started it; its result is dropped. A rank that failed
  // alone does not come here again: its error ends the run.
  for (Bucket& bucket : buckets) {
    if (bucket.work) bucket.work->wait();
    bucket.work.reset();
  }
  close_window();
  task = kNoTask;
}

void GradientEngine::set_synchronising(bool on) noexcept { state_->synchronising = on; }
bool GradientEngine::synchronising() const noexcept { return state_->synchronising; }

void GradientEngine::idle_step() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.begin(state.synchronising, kIdleTask);
  state.count(0.0);
  state.end();
}

void GradientEngine::synchronise_buffers() {
  broadcast_from_rank_0(*state_->group, state_->list_buffers());
}

EngineReport GradientEngine::report() const {
  const std::lock_guard lock(state_->mutex);
  return state_->report;
}

}  // namespace yoke::parallel
