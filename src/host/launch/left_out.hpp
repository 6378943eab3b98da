#pragma once

#include <optional>
#include <string>

#include "yoke/core/environment.hpp"
#include "yoke/launch/failure.hpp"

namespace yoke::launch {

// Leaves a rank out for one attempt that twice in a row brought the job down from below: killed, or
// with a card that is gone. The rest go on with one rank fewer; at the start after that it is tried
// again.
class LeftOut {
 public:
  struct Options {
    int ranks = 1;
    int fewest = 0;  // 0: never leave one out
  };

  explicit LeftOut(const Options& options) : options_(options) {}

  // Of the next attempt.
  [[nodiscard]] int ranks() const { return options_.ranks - (hidden_ ? 1 : 0); }

  // Takes the left-out rank's card from the list that the ranks see, if they see any list or card.
  void hide_card(core::EnvironmentMap& extra, const core::EnvironmentMap& variables) const;

  // Takes in how an attempt failed; returns a line to say, or an empty one.
  [[nodiscard]] std::string after(const Failure& failure, int first_rank);

 private:
  Options options_;
  std::optional<int> suspect_;  // local rank that ended the last attempt
  std::optional<int> hidden_;   // local rank that the next attempt goes without
};

}  // namespace yoke::launch
