#pragma once

#include <filesystem>
#include <memory>

#include "yoke/profile/summary.hpp"

namespace yoke::profile {

struct RecorderOptions {
  bool host = true;    ///< operators and the runtime's calls on the CPU
  bool device = true;  ///< kernels and copies, where there is a card
  bool flops = false;  ///< Event::flops of the host's operators; needs `host`
};

/// torch's profiler around some steps of the calling thread, and of the autograd threads that work
/// for it.
///
///   Recorder recorder;          // begins
///   for (int i = 0; i < 5; ++i) step();
///   recorder.stop();            // waits for the device
///   recorder.save("rank0.json");
///   const Summary summary = summarise(recorder.events(), 5);
///
/// One at a time in a process. Threads: the one that made it stops it.
/// Cost: about 1 us a kernel on the host, 4 us an operator where the host is recorded; the first
/// one in a process starts the card's tracing, which takes up to seconds.
/// Errors: invalid_argument while another one records in this process; what torch's profiler
/// throws.
class Recorder {
 public:
  explicit Recorder(RecorderOptions options = {});
  ~Recorder();  ///< stops, and drops what was recorded
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Ends the recording; no effect the second time.
  void stop();

  /// Everything that was recorded, by start time. After stop().
  [[nodiscard]] std::vector<Event> events() const;

  /// A trace that Perfetto (ui.perfetto.dev) and chrome://tracing show. Once, after stop().
  /// Errors: io where the file cannot be written.
  void save(const std::filesystem::path& file);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While it lives, operators of this thread and of autograd's threads for it are NVTX ranges, as
/// nsys shows them. No effect without CUDA.
class NvtxRanges {
 public:
  NvtxRanges();
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

 private:
  bool on_ = false;
};

}  // namespace yoke::profile
