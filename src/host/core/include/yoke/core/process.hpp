#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"

namespace yoke::core {

/// A process that cannot be mistaken for a later one of the same number.
struct ProcessId {
  pid_t pid{0};
  std::uint64_t start_time{0};  ///< clock ticks since the machine started
  auto operator<=>(const ProcessId&) const = default;
};

/// The process that has this number now, a zombie too; nothing if there is none.
[[nodiscard]] std::optional<ProcessId> identify(pid_t pid);

/// Whether it runs or sleeps still; a zombie does not.
[[nodiscard]] bool is_alive(const ProcessId& process);

/// Children, their children and so on, zombies left out, whatever session they moved to.
[[nodiscard]] std::vector<ProcessId> descendants(pid_t root);

/// Sends the signal to that very process; false if it is gone. Linux 5.3 gives this without a race.
bool send_signal(const ProcessId& process, int signal) noexcept;

/// "SIGSEGV"; "signal 99" for a number without a name.
[[nodiscard]] std::string signal_name(int signal);

struct ChildOptions {
  std::vector<std::string> command;  ///< the program (looked for in PATH) and its arguments
  std::optional<EnvironmentMap> variables{};  ///< the parent's if absent
  std::string input{};                        ///< its standard input; closed after it
  std::chrono::milliseconds limit{
      60'000};  ///< for wait(): then it is killed, with its process group
};

struct ChildResult {
  int exit_code{0};  ///< 0 if a signal ended it
  int signal{0};     ///< 0 if it exited
  bool timed_out{false};
  std::string out;
  std::string err;
  [[nodiscard]] bool succeeded() const noexcept {
    return exit_code == 0 && signal == 0 && !timed_out;
  }
};

/// A child process whose words come back through pipes.
///
///   Child child({.command = {"nvidia-smi", "-L"}, .limit = 5s});
///   const ChildResult result = child.wait();
///
/// It leads a process group of its own and gets SIGKILL when the thread that started it ends.
/// Owns: the process and its pipes; the destructor kills what still runs, with its group.
/// Threads: one at a time.
/// Errors: not_found for a program that is not there; io where the system refuses to start it.
class Child {
 public:
  explicit Child(ChildOptions options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const noexcept;

  /// Waits until `text` stands in its output (either stream); false if it ended or the limit passed
  /// before.
  bool wait_for(std::string_view text, std::chrono::milliseconds limit);

  /// Sends a signal to the child alone.
  void signal(int number) noexcept;

  /// Waits for the end of the child and of its output; at the limit kills it.
  ChildResult wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Child in one call.
[[nodiscard]] ChildResult run_child(ChildOptions options);

/// The file that a shell would run for `program`; nothing if there is none.
[[nodiscard]] std::optional<std::string> find_program(const std::string& program,
                                                      const EnvironmentMap& variables);

}  // namespace yoke::core
