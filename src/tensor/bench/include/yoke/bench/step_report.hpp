#pragma once

#include <string>

#include "yoke/bench/step_bench.hpp"

namespace yoke::bench {

/// Where one step goes, as `yoke bench step` shows it:
///   {"bench": run_step_bench() with its profile, "copy_gigabytes_per_second", "matrix_teraflops":
///    what this device reaches with plain copies and products of the same format,
///    "groups": [{"name", "ms", "launches", "gigabytes": moved at least, where that is known,
///    "of_copy": their rate over the copies', "teraflops", "of_matrix"}], "flops": of one step}
/// Rank 0 of one: it measures a single device. Cost: a second or two beside the steps.
[[nodiscard]] core::Json step_report(const StepBenchOptions& options, comm::World& world);

/// The same for people.
[[nodiscard]] std::string step_report_text(const core::Json& report);

}  // namespace yoke::bench
