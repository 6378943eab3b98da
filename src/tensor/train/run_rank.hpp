#pragma once

#include <exception>
#include <functional>

#include "yoke/comm/world.hpp"
#include "yoke/core/environment.hpp"

namespace yoke::train {

// Standard error, unless the program attached a console of its own before.
void attach_console();

// Joins the world and calls `rank_main`; an error is told (see below) before the world is left.
// Returns the exit code. Errors: those of World::from_environment().
[[nodiscard]] int run_rank(const std::function<int(comm::World&)>& rank_main,
                           const core::EnvironmentMap& variables);

// Says the error, or leaves it for the launcher, which prints it last. Returns the exit code for
// it.
int tell(const std::exception& error, const core::EnvironmentMap& variables) noexcept;

}  // namespace yoke::train
