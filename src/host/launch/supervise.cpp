#include "yoke/launch/supervise.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <random>
#include <utility>

#include "attempt.hpp"
#include "job_report.hpp"
#include "left_out.hpp"
#include "rank_environment.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"
#include "yoke/launch/start_time.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
using core::Level;
using core::say;
using core::text;

std::string made_up_job_id() {
  std::random_device entropy;
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%08x%08x", entropy(), entropy());
  return out.data();
}

std::string resolve(const LaunchOptions& options, const core::EnvironmentMap& variables) {
  if (options.command.empty()) throw Error(Code::invalid_argument, "launch: no program given");
  if (options.ranks < 1) {
    throw Error(Code::invalid_argument, text("launch: ", options.ranks, " ranks asked for"),
                "ask for 1 at least");
  }
  if (!options.program.empty()) return options.program;
  const std::string& name = options.command.front();
  if (const auto file = core::find_program(name, variables)) return *file;
  const bool there = fs::exists(name);
  throw Error(Code::not_found,
              text("launch ", name, there ? ": it is not executable" : ": no such program"),
              fs::is_directory(name) ? std::string("give a program in it: this is a folder")
              : there                ? text("chmod +x ", name)
                                     : std::string("give its path, or put its folder into PATH"));
}

/// Goes on until the ranks end well or are not to be started again.
Outcome attempts(const LaunchOptions& options, SignalRelay& signals, const std::string& program,
                 const core::EnvironmentMap& variables, const std::string& job_id) {
  RestartPolicy policy(options.restart);
  LeftOut left_out({.ranks = options.ranks, .fewest = options.fewest_ranks});
  std::vector<Failure> earlier;
  for (int number = 0;; ++number) {
    AttemptPlan plan{.options = options,
                     .signals = signals,
                     .program = program,
                     .variables = variables,
                     .job_id = job_id,
                     .number = number,
                     .ranks = left_out.ranks(),
                     .extra = options.extra};
    left_out.hide_card(plan.extra, variables);
    Outcome outcome = run_attempt(plan);
    const RestartPolicy::Decision decision =
        policy.after(outcome, std::chrono::steady_clock::now());
    if (!decision.again || !outcome.root_cause) {
      outcome.exit_code = decision.exit_code;
      outcome.earlier = std::move(earlier);
      if (!decision.why.empty()) say(Level::warning, decision.why);
      return outcome;
    }
    say(Level::warning, text("attempt ", number, " failed: ", describe(*outcome.root_cause)));
    say(Level::warning, decision.why);
    const std::string notice = left_out.after(*outcome.root_cause, options.placement.first_rank);
    if (!notice.empty()) say(Level::warning, notice);
    earlier.push_back(std::move(*outcome.root_cause));
  }
}

}  // namespace

Outcome supervise(const LaunchOptions& options) {
  SignalRelay signals;  // to the end: a second SIGINT must not keep us from tidying up
  core::EnvironmentMap variables = core::environment();
  variables.insert_or_assign(kStartTimeVariable, start_time_value(user_start_time(variables)));
  const std::string program = resolve(options, variables);
  core::check_gloo_interface(variables, core::network_interfaces());
  const std::string notice = share_threads(variables, options.ranks, device::usable_cores());
  if (!notice.empty() && core::value_or(options.extra, "OMP_NUM_THREADS").empty())
    say(Level::info, notice);
  const std::string job_id = options.job_id.empty() ? made_up_job_id() : options.job_id;
  const Outcome outcome = attempts(options, signals, program, variables, job_id);
  if (options.quiet) return outcome;
  report_outcome(outcome, job_id, options.ranks,
                 {options.failure_file, core::value_or(variables, "YOKE_FAILURE_FILE")});
  return outcome;
}

void report_outcome(const Outcome& outcome, const std::string& job_id, int world_size,
                    const std::vector<fs::path>& files) {
  write_failure_files(outcome, job_id, files);
  tell(outcome, world_size);
}

}  // namespace yoke::launch
