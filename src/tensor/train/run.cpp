#include "yoke/train/run.hpp"

#include <unistd.h>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "run_rank.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/launch/exit_code.hpp"
#include "yoke/launch/failure.hpp"
#include "yoke/launch/self.hpp"

namespace yoke::train {

void attach_console() {
  if (auto before = core::attach(std::make_shared<core::StreamConsole>(STDERR_FILENO))) {
    core::attach(std::move(before));
  }
}

int tell(const std::exception& error, const core::EnvironmentMap& variables) noexcept try {
  if (core::value_or(variables, "TORCHELASTIC_ERROR_FILE").empty()) {
    core::say(core::Level::error, error.what());
  }
  launch::report_failure(error, variables);
  const auto* ours = dynamic_cast<const Error*>(&error);
  return ours == nullptr ? 1 : launch::exit_code(ours->code());
} catch (...) {
  return 1;  // out of memory while the error was told: the exit code still tells it
}

int report(const std::exception& error) noexcept try {
  attach_console();
  return tell(error, core::environment());
} catch (...) {
  return 1;
}

int run_rank(const std::function<int(comm::World&)>& rank_main,
             const core::EnvironmentMap& variables) {
  comm::World world = comm::World::from_environment();
  try {
    return rank_main(world);
  } catch (const std::exception& error) {
    // Before the world is left: its end wakes the others, whose words would otherwise be the first.
    const int exit_code = tell(error, variables);
    world.telemetry().failed(error.what());
    return exit_code;
  }
}

int run_ranks(int argc, char** argv, const std::function<int(comm::World&)>& rank_main) {
  attach_console();
  core::EnvironmentMap variables;
  try {
    variables = core::environment();
    if (const std::optional<int> exit_code = launch::run_self(argc, argv)) return *exit_code;
    return run_rank(rank_main, variables);
  } catch (const std::exception& error) {
    return tell(error, variables);
  }
}

}  // namespace yoke::train
