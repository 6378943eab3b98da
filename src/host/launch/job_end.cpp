#include "job_end.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "signal_relay.hpp"

namespace yoke::launch {
namespace {

bool ended_well(const RankEnd& end) { return end.ended && end.exit_code == 0 && end.signal == 0; }

bool every_rank_ended_with(const JobRecord& record, int exit_code) {
  return std::all_of(record.ranks.begin(), record.ranks.end(), [&](const RankEnd& end) {
    return end.ended && !end.stopped && end.exit_code == exit_code;
  });
}

/// The signal that the rank ended by in good order: one that was passed on and ended it, or by
/// which it exited with 128+n; or one of which all ranks had word from elsewhere. 0: none.
int obeyed_signal(const JobRecord& record, const RankEnd& end) {
  const auto was_passed_on = [&](int signal) {
    return std::find(record.passed_on.begin(), record.passed_on.end(), signal) !=
           record.passed_on.end();
  };
  if (end.signal != 0) return was_passed_on(end.signal) ? end.signal : 0;
  const int signal = end.exit_code - 128;
  if (is_passed_on(signal) &&
      (was_passed_on(signal) || every_rank_ended_with(record, end.exit_code))) {
    return signal;
  }
  return record.end_signal();  // a non-zero code after a signal that asks to end
}

int exit_code_of(const Outcome& outcome, int signal) {
  if (outcome.root_cause) {
    const int code = outcome.root_cause->exit_code;
    return code >= 2 && code <= 4 ? code : 1;
  }
  return signal != 0 ? 128 + signal : 0;
}

/// When the file was last written, since 1970; as coarse as the kernel's clock tick (1 to 10 ms).
std::optional<std::int64_t> changed_ns(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

double JobRecord::seconds_at(std::int64_t time_ns) const {
  return std::max(0.0, static_cast<double>(time_ns - start_ns) * 1e-9);
}

int JobRecord::end_signal() const {
  const auto last = std::find_if(passed_on.rbegin(), passed_on.rend(), asks_to_end);
  return last == passed_on.rend() ? 0 : *last;
}

std::optional<Failure> failure_of(const JobRecord& record, const JobFacts& job, int rank) {
  const RankEnd& end = record.ranks[static_cast<std::size_t>(rank)];
  if (!end.ended || ended_well(end)) return std::nullopt;
  const std::filesystem::path path = error_file(job, rank);
  std::optional<Failure> failure = read_error_file(path);
  const bool has_words = failure.has_value();
  if (!has_words && (end.stopped || obeyed_signal(record, end) != 0)) return std::nullopt;
  if (!has_words) failure.emplace();
  failure->rank = job.global(rank);
  failure->host = record.host;
  failure->exit_code = end.exit_code;
  failure->signal = end.signal;
  if (failure->time_ns == 0)
    failure->time_ns = has_words ? changed_ns(path).value_or(end.time_ns) : end.time_ns;
  failure->seconds = record.seconds_at(failure->time_ns);
  return failure;
}

Outcome conclude(const JobRecord& record, const JobFacts& job) {
  Outcome outcome;
  std::vector<Failure> failures = record.failures;
  int obeyed = 0;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const RankEnd& end = record.ranks[static_cast<std::size_t>(rank)];
    if (auto failure = failure_of(record, job, rank)) {
      failures.push_back(std::move(*failure));
    } else if (!end.ended || (end.stopped && !ended_well(end))) {
      outcome.stopped.push_back(job.global(rank));
    } else if (!ended_well(end)) {
      obeyed = std::max(obeyed, obeyed_signal(record, end));
    }
  }
  choose_root_cause(std::move(failures), outcome);
  const bool all_well = std::all_of(record.ranks.begin(), record.ranks.end(), ended_well);
  const int signal = record.end_signal();
  const bool done = signal == 0 || (record.zero_is_done && all_well);
  outcome.exit_code = exit_code_of(outcome, done ? obeyed : signal);
  return outcome;
}

}  // namespace yoke::launch
