#include "yoke/launch/restart.hpp"

#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::text;

/// What a scheduler and we read alike: another start would end the same way.
bool says_never(const Failure& failure) {
  const bool launchers_own = failure.rank < 0;
  return (failure.exit_code >= 2 && failure.exit_code <= 4) ||
         (launchers_own && failure.code == "timeout");
}

bool is_same(const Failure& a, const Failure& b) {
  return !a.message.empty() && a.rank == b.rank && a.message == b.message;
}

std::string times(int count) { return count == 1 ? "once" : text(count, " times"); }

}  // namespace

bool RestartPolicy::came_further(const Outcome& outcome) {
  const bool same = last_ && outcome.root_cause && is_same(*last_, *outcome.root_cause);
  last_ = outcome.root_cause;
  if (!outcome.furthest_step) return !same;
  const bool further = !furthest_ || *outcome.furthest_step > *furthest_;
  if (further) furthest_ = outcome.furthest_step;
  return further;
}

RestartPolicy::Decision RestartPolicy::after(const Outcome& outcome, Time now) {
  const Decision end{false, outcome.exit_code, {}};
  if (!outcome.root_cause || says_never(*outcome.root_cause)) return end;
  stuck_ = came_further(outcome) ? 1 : stuck_ + 1;
  if (options_.limit == 0) return end;
  if (options_.without_progress > 0 && stuck_ >= options_.without_progress) {
    const std::string where = furthest_ ? text(" beyond step ", *furthest_) : std::string{};
    return {false, 4,
            text("not started again: ", stuck_, " attempts in a row came no further", where)};
  }
  if (options_.window) {
    while (!restarts_.empty() && restarts_.front() + *options_.window < now) restarts_.pop_front();
  }
  const auto done = static_cast<int>(restarts_.size());
  if (done >= options_.limit) {
    return {false, outcome.exit_code,
            text("not started again: it was ", times(done), " already (--max-restarts ",
                 options_.limit, ")")};
  }
  restarts_.push_back(now);
  return {true, outcome.exit_code,
          text("starting all ranks again, restart ", done + 1, " of ", options_.limit)};
}

}  // namespace yoke::launch
