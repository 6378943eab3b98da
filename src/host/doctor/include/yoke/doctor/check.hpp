#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/doctor/machine.hpp"

namespace yoke::doctor {

enum class Status { pass, warn, fail, skip };
[[nodiscard]] std::string_view name(Status status) noexcept;

/// What a failure of a check means.
enum class Weight {
  blocks,  ///< nothing can train here
  hurts,   ///< training works, slower or not in every case
};

struct Finding {
  Status status = Status::pass;
  std::string text{};  ///< what was seen, with numbers
  std::string fix{};   ///< one thing to do; empty: the check's own
};

/// A question to the machine.
struct Check {
  std::string_view id;  ///< "driver.module": the group before the dot
  std::string_view title;
  Weight weight;
  std::chrono::milliseconds limit;
  Finding (*run)(const Machine&);
  std::string_view fix;
};

/// All checks, in the order in which their answers are read best: docs/doctor.md lists them.
[[nodiscard]] const std::vector<Check>& all_checks();

struct Result {
  std::string id{};
  std::string title{};
  Weight weight = Weight::hurts;
  Finding finding{};
  std::chrono::microseconds took{};
};

enum class Verdict { ok, warning, cannot_train };
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;

struct Report {
  std::vector<Result> results{};
  bool abandoned = false;  ///< a check still waits in a thread of its own: leave by _Exit

  [[nodiscard]] Verdict verdict() const noexcept;
};

/// Which checks to run: ids, groups or patterns with *. Empty `only`: all.
struct Selection {
  std::vector<std::string> only{};
  std::vector<std::string> skip{};
};

/// The checks of `from` that a selection leaves.
/// Errors: invalid_argument for a word that fits no check.
[[nodiscard]] std::vector<Check> select(const std::vector<Check>& from, const Selection& selection);

/// Runs checks one after the other, each in a thread of its own. One that is not done within its
/// limit is given up: it warns, and so do those that need the same answer.
/// Owns the machine together with the threads that were given up.
[[nodiscard]] Report run_checks(const std::vector<Check>& checks,
                                const std::shared_ptr<const Machine>& machine);

}  // namespace yoke::doctor
