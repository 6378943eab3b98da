#include "job_report.hpp"

#include <algorithm>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/telemetry_reader.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::Level;
using core::say;
using core::text;

std::string collective_text(const core::CollectiveFacts& facts) {
  return text(core::name(facts.kind), " #", facts.sequence, " (", core::bytes_text(facts.bytes),
              ")");
}

std::string last_step(const JobFacts& job, int rank) try {
  const core::TelemetrySnapshot seen =
      core::TelemetryReader(core::telemetry_file(job.telemetry_root, job.id, rank)).read();
  std::string words = seen.step_ended ? text("after step ", seen.last_step.step)
                                      : "before the end of its first step";
  const bool waits = !seen.collectives.empty() && !seen.collectives.back().ended;
  if (waits) words += ", in " + collective_text(seen.collectives.back().facts);
  return words;
} catch (const Error&) {
  return {};  // not a program of ours, or it never came so far
}

std::string summary(const Outcome& outcome, int world_size) {
  const Failure& cause = *outcome.root_cause;
  const auto failed = std::count_if(outcome.follow_ups.begin(), outcome.follow_ups.end(),
                                    [](const Failure& failure) { return failure.rank >= 0; }) +
                      (cause.rank >= 0 ? 1 : 0);
  std::string line = text(failed, " of ", world_size, " ranks failed");
  if (cause.rank >= 0) {
    Failure ending = cause;
    ending.message.clear();
    const std::string first = describe(ending);
    line += "; first " + first.substr(0, first.find(" / "));
  }
  if (outcome.stopped.empty()) return line;
  std::vector<std::string> names;
  for (const int rank : outcome.stopped) names.push_back(std::to_string(rank));
  return text(line, "; stopped: ", core::joined(names));
}

}  // namespace

void add_last_steps(Outcome& outcome, const JobFacts& job) {
  if (outcome.root_cause && outcome.root_cause->rank >= 0)
    outcome.root_cause->last_step = last_step(job, outcome.root_cause->rank);
  for (Failure& failure : outcome.follow_ups) {
    if (failure.rank >= 0) failure.last_step = last_step(job, failure.rank);
  }
}

void add_furthest_step(Outcome& outcome, const JobFacts& job) {
  for (int rank = 0; rank < job.ranks; ++rank) {
    try {
      const core::TelemetrySnapshot seen =
          core::TelemetryReader(core::telemetry_file(job.telemetry_root, job.id, job.global(rank)))
              .read();
      if (!seen.step_ended) continue;
      outcome.furthest_step = std::max(outcome.furthest_step.value_or(0), seen.last_step.step);
    } catch (const Error&) {
      // it ended well, or is not a program of ours
    }
  }
}

void write_failure_files(const Outcome& outcome, const std::string& job_id,
                         const std::vector<std::filesystem::path>& paths) {
  if (!outcome.root_cause) return;
  for (const std::filesystem::path& path : paths) {
    if (path.empty()) continue;
    try {
      write_failure_file(path, outcome, job_id);
      say(Level::info, text("failure written to ", path.string()));
    } catch (const Error& error) {
      say(Level::warning, error.what());
    }
  }
}

void tell(const Outcome& outcome, int world_size) {
  if (!outcome.root_cause) {
    if (outcome.exit_code > 128)
      say(Level::warning, text("stopped by ", core::signal_name(outcome.exit_code - 128)));
    return;
  }
  for (const Failure& failure : outcome.follow_ups)
    say(Level::warning, text("follow-up: ", describe(failure)));
  say(Level::warning, summary(outcome, world_size));
  say(Level::error, describe(*outcome.root_cause));
}

}  // namespace yoke::launch
