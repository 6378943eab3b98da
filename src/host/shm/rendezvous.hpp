#pragma once

#include <cstddef>
#include <vector>

#include "control.hpp"
#include "yoke/shm/team.hpp"

namespace yoke::shm {

/// Makes this rank's control segment, finds those of the others, and agrees with them that all were
/// found: either every rank gets its members or every rank gets the same error.
[[nodiscard]] std::vector<Member> meet(const Exchange& exchange, const TeamOptions& options);

}  // namespace yoke::shm
