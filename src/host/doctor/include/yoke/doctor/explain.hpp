#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/doctor/machine.hpp"

namespace yoke::doctor {

/// What an error text means, on this machine.
struct Meaning {
  std::string id{};  ///< cuda-35, cuda-out-of-memory, module-prefix, ...; docs/doctor.md lists them
  std::string reason{};  ///< what happened
  std::string seen{};    ///< what was looked at here and speaks for it; empty: nothing to look at
  std::string change{};  ///< the line to change or the one thing to do
};

/// The meanings of a text (a whole log, or one line), the surest first; none where it is not known.
/// Cost: as the checks that look at the same facts.
[[nodiscard]] std::vector<Meaning> explain_text(std::string_view text, const Machine& machine);

/// The ids of all texts that are known.
[[nodiscard]] std::vector<std::string> known_meanings();

}  // namespace yoke::doctor
