#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "yoke/core/json.hpp"

namespace yoke::comm {
class World;
}

namespace yoke::bench {

/// What is timed: training steps of one model on data that lies on the device already.
struct StepBenchOptions {
  std::string model = "resnet50";  ///< one of models::names()
  /// Ways to train, timed in turn within this process, so that what slows the machine for a while
  /// slows each: none, ddp, dp; with "+graph" the whole step is replayed from a CUDA graph.
  std::vector<std::string> ways{"ddp"};
  std::string precision = "fp32";  ///< fp32, tf32, bf16, fp16
  bool kernels = true;             ///< the fused ones of room kernels
  std::int64_t batch = 64;         ///< images per rank; dp: of all its devices together
  int devices = 1;                 ///< dp: how many this process drives
  int steps = 100;
  int warmup = 10;
  bool profile = false;    ///< record three more steps: utilisation, gaps, communication
  bool all_ranks = false;  ///< for programs: each rank prints its result, not rank 0 alone
  std::string trace{};     ///< with profile: a file for the trace; empty: none
};

/// Collective. On every rank:
///   {"step_ms": median of the first way, "in_turn_ms": {way: median}, "batch", "ranks",
///    "images_per_second": of all ranks, "first_step_ns": wall clock at the first step's end,
///    "loss": of the first way after its last step, by which rivals are checked,
///    "peak_bytes", "allocated_bytes", "reserved_bytes": of this rank's first device,
///    "replays": captured steps of the first way, "parameter_bytes", "backend",
///    "profile": profile::to_json() with "utilisation", where options.profile}
/// Images and weights come from formulas that bench/peers/step.py holds too.
/// Errors: not_found for a model, way or precision that is not there.
[[nodiscard]] core::Json run_step_bench(const StepBenchOptions& options, comm::World& world);

/// The words of program yoke-bench: `--model resnet50 --ways none,ddp --batch 64 ...`. Errors:
/// invalid_argument, which names the word.
[[nodiscard]] StepBenchOptions step_bench_options(const std::vector<std::string>& words);

}  // namespace yoke::bench
