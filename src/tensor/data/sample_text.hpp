#pragma once

#include <string>

#include "yoke/data/dataset.hpp"

namespace yoke::data {

/// "load sample 13 (images/0013.jpg, worker 2)": how messages about a sample begin.
[[nodiscard]] std::string loading(const Dataset& dataset, std::int64_t index, int worker);

}  // namespace yoke::data
