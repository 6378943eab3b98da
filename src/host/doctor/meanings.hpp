#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/doctor/explain.hpp"

namespace yoke::doctor {

// One kind of error text. `marks`: any of them, in lower case; "a & b" needs both.
struct KnownText {
  std::string_view id;
  std::vector<std::string_view> marks;
  std::string_view reason;
  std::string_view change;
  // Looks at the machine and completes what is said; null: there is nothing to look at.
  void (*look)(const Machine&, Meaning&) = nullptr;
};

// Numbers and texts of CUDA, the driver and the loader.
[[nodiscard]] std::vector<KnownText> driver_texts();

// What a beginner's program says.
[[nodiscard]] std::vector<KnownText> program_texts();

}  // namespace yoke::doctor
