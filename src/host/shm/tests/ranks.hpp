#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/shm/shm.hpp"

namespace yoke::shm::testing {

/// What a rank does; its text (bytes of a result, say) comes back to the test.
using Body = std::function<std::string(Team&)>;

struct Outcome {
  std::string result;
  std::optional<Error> error;
  bool died{false};                             ///< a process that ended without a word
  std::chrono::steady_clock::time_point end{};  ///< when that was known
};

/// Fitted for tests: a limit that ends a hang, staging so small that calls need many parts.
TeamOptions small_options();

/// Runs `body` as each rank of a team of threads of this process. `options` serves all ranks; rank
/// and size are filled in. `tamper`, if given, changes what a rank says when the ranks meet.
using Tamper = std::function<std::string(int rank, std::string said)>;
std::vector<Outcome> run_threads(int size, const Body& body, TeamOptions options = small_options(),
                                 const Tamper& tamper = {});

/// The same with a forked process per rank. A rank in `stalled` is expected never to end: it is
/// killed when the others have ended.
std::vector<Outcome> run_processes(int size, const Body& body,
                                   TeamOptions options = small_options(),
                                   const std::set<int>& stalled = {});

/// Fails the test for each rank that did not end well.
void expect_all_well(const std::vector<Outcome>& outcomes);

/// A number that threads and forked processes of this test count up together.
class SharedCounter {
 public:
  SharedCounter();
  ~SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::atomic<int>& operator*() const { return *number_; }

 private:
  std::atomic<int>* number_;
};

}  // namespace yoke::shm::testing
