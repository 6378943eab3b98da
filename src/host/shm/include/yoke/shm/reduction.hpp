#pragma once

#include <string_view>

namespace yoke::shm {

/// How the ranks' elements become one. All run in rank order, so that the result's bits depend on
/// nothing else. Integers wrap around. A NaN anywhere gives NaN, also in minimum and maximum. Of
/// booleans, sum and maximum are "any", product and minimum "all". float16 and bfloat16 gather in
/// float and round once.
enum class Reduction { sum, product, minimum, maximum, mean };

[[nodiscard]] std::string_view name(Reduction reduction) noexcept;

/// What one rank puts into a mean: result = sum of scale_r * x_r over sum of count_r.
///
/// A rank of scale 0 is not read at all, so its elements may be NaN; if all are, the result is 0.
/// Looked at for Reduction::mean only.
struct Contribution {
  double scale{1.0};  ///< the factor of this rank's elements
  double count{1.0};  ///< this rank's share of the divisor
};

}  // namespace yoke::shm
