#pragma once

#include <optional>

namespace yoke::parallel {

/// The count that mean() gives to the backward that runs now, by graph task: it is known before the
/// outputs' nodes run, since autograd runs what forward made last first.
///
/// Threads: any; the map behind it is guarded.
void set_step_count(double count);
[[nodiscard]] std::optional<double> step_count();

}  // namespace yoke::parallel
