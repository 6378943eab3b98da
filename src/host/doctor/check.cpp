#include "yoke/doctor/check.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <thread>
#include <utility>

#include "checks.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

using core::text;
using Clock = std::chrono::steady_clock;

bool fits(const Check& check, const std::string& word) {
  return check.id == word || check.id.starts_with(word + ".") ||
         core::matches_pattern(check.id, word);
}

bool any_fits(const Check& check, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return fits(check, word); });
}

void require_known(const std::vector<Check>& checks, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const bool known = std::any_of(checks.begin(), checks.end(),
                                   [&](const Check& check) { return fits(check, word); });
    if (known) continue;
    std::vector<std::string> ids;
    for (const Check& check : checks) ids.emplace_back(check.id);
    throw Error(Code::invalid_argument, text("doctor: no check '", word, "'"),
                core::unknown_name_hint(word, ids));
  }
}

Finding answer(const Check& check, const Machine& machine) {
  try {
    return check.run(machine);
  } catch (const Error& error) {
    const bool waits = error.code() == Code::timeout;
    return {.status = waits ? Status::skip : Status::warn,
            .text = error.message(),
            .fix = error.hint()};
  } catch (const std::exception& error) {
    return {.status = Status::warn, .text = error.what()};
  }
}

}  // namespace

std::string_view name(Status status) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"pass", "warn", "fail", "skip"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view name(Verdict verdict) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"ok", "warning", "cannot train"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Verdict Report::verdict() const noexcept {
  Verdict out = Verdict::ok;
  for (const Result& result : results) {
    const Status status = result.finding.status;
    if (status == Status::fail && result.weight == Weight::blocks) return Verdict::cannot_train;
    if (status == Status::fail || status == Status::warn) out = Verdict::warning;
  }
  return out;
}

const std::vector<Check>& all_checks() {
  static const std::vector<Check> checks = [] {
    std::vector<Check> out;
    for (const std::vector<Check>& group : {host_checks(), driver_checks(), stack_checks()})
      out.insert(out.end(), group.begin(), group.end());
    return out;
  }();
  return checks;
}

std::vector<Check> select(const std::vector<Check>& from, const Selection& selection) {
  require_known(from, selection.only);
  require_known(from, selection.skip);
  std::vector<Check> out;
  std::copy_if(from.begin(), from.end(), std::back_inserter(out), [&](const Check& check) {
    return (selection.only.empty() || any_fits(check, selection.only)) &&
           !any_fits(check, selection.skip);
  });
  return out;
}

Report run_checks(const std::vector<Check>& checks, const std::shared_ptr<const Machine>& machine) {
  Report report;
  for (const Check& check : checks) {
    Result result{
        .id = std::string(check.id), .title = std::string(check.title), .weight = check.weight};
    const auto begin = Clock::now();
    std::packaged_task<Finding()> task([check, machine] { return answer(check, *machine); });
    std::future<Finding> finding = task.get_future();
    std::thread thread(std::move(task));
    if (finding.wait_for(check.limit) == std::future_status::ready) {
      thread.join();
      result.finding = finding.get();
    } else {
      thread.detach();
      report.abandoned = true;
      result.finding = {.status = Status::warn,
                        .text = text("no answer within ", check.limit.count(), " ms")};
    }
    const bool needs_fix =
        result.finding.status == Status::warn || result.finding.status == Status::fail;
    if (needs_fix && result.finding.fix.empty()) result.finding.fix = std::string(check.fix);
    result.took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    report.results.push_back(std::move(result));
  }
  return report;
}

}  // namespace yoke::doctor
