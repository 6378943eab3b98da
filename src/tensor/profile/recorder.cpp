#include "yoke/profile/recorder.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include <torch/csrc/autograd/profiler_kineto.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#ifdef YOKE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace yoke::profile {
namespace {

namespace profiler = torch::autograd::profiler;
namespace impl = torch::profiler::impl;

std::atomic<bool> recording{false};

bool has_card() {
#ifdef YOKE_CUDA
  return c10::cuda::device_count() > 0;
#else
  return false;
#endif
}

void wait_for_cards() {
#ifdef YOKE_CUDA
  if (has_card()) c10::cuda::device_synchronize();
#endif
}

}  // namespace

struct Recorder::State {
  std::unique_ptr<profiler::ProfilerResult> result{};
  bool stopped = false;
};

Recorder::Recorder(RecorderOptions options) : state_(std::make_unique<State>()) {
  if (recording.exchange(true)) {
    throw Error(Code::invalid_argument, "record a profile: another one is being recorded",
                "stop that one first; a process has one profiler");
  }
  std::set<impl::ActivityType> activities;
  if (options.host) activities.insert(impl::ActivityType::CPU);
  if (options.device && has_card()) activities.insert(impl::ActivityType::CUDA);
  try {
    wait_for_cards();  // what was started before does not belong here
    const impl::ProfilerConfig config(impl::ProfilerState::KINETO,
                                      /*report_input_shapes=*/options.flops,
                                      /*profile_memory=*/false, /*with_stack=*/false,
                                      /*with_flops=*/options.flops);
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
  } catch (...) {
    recording = false;
    throw;
  }
}

Recorder::~Recorder() {
  try {
    stop();
  } catch (...) {
    // Torch's profiler has nothing to say that would help here.
  }
}

void Recorder::stop() {
  if (std::exchange(state_->stopped, true)) return;
  struct Ended {  // whatever is thrown, another one may record
    ~Ended() { recording = false; }
  } const ended;
  try {
    wait_for_cards();
  } catch (...) {
    (void)profiler::disableProfiler();
    throw;
  }
  state_->result = profiler::disableProfiler();
}

std::vector<Event> Recorder::events() const {
  std::vector<Event> out;
  if (!state_->result) return out;
  for (const profiler::KinetoEvent& event : state_->result->events()) {
    const bool on_device = event.deviceType() == at::kCUDA;
    if (event.endNs() <= event.startNs()) continue;
    out.push_back({.name = event.name(),
                   .on_device = on_device,
                   .device = on_device ? event.deviceIndex() : 0,
                   .stream = on_device ? static_cast<std::uint64_t>(event.deviceResourceId())
                                       : event.startThreadId(),
                   .start_ns = event.startNs(),
                   .end_ns = event.endNs(),
                   .flops = event.flops()});
  }
  std::ranges::stable_sort(out, {}, &Event::start_ns);
  return out;
}

void Recorder::save(const std::filesystem::path& file) {
  if (!state_->result) throw Error(Code::invalid_argument, "save a profile before stop()");
  state_->result->save(file.string());
  std::error_code error;
  if (std::filesystem::file_size(file, error) > 0 && !error) return;
  throw Error(Code::io, core::text("write the trace ", file.string(), ": nothing arrived there"),
              "look whether the folder can be written and the disk has room");
}

NvtxRanges::NvtxRanges() : on_(has_card()) {
  if (!on_) return;
  profiler::enableProfiler(impl::ProfilerConfig(impl::ProfilerState::NVTX), {},
                           {at::RecordScope::FUNCTION});
}

NvtxRanges::~NvtxRanges() {
  if (on_) profiler::disableProfiler();
}

}  // namespace yoke::profile
