#include "yoke/launch/supervise.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <random>
#include <system_error>
#include <utility>

#include "guardian.hpp"
#include "line_relay.hpp"
#include "rank_environment.hpp"
#include "scratch_folder.hpp"
#include "signal_relay.hpp"
#include "store_port.hpp"
#include "subreaper.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/launch/start_time.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
using core::Level;
using core::say;
using core::text;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// After the first failure the others may still tell why they fail, and a rank that lost contact may
// have failed before the one that caused it: an orderly stop begins this much later.
constexpr milliseconds kSettle{1'000};

std::int64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string made_up_job_id() {
  std::random_device entropy;
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%08x%08x", entropy(), entropy());
  return out.data();
}

/// How one rank's process ended.
struct RankEnd {
  bool ended = false;
  int exit_code = 0;
  int signal = 0;
  std::int64_t time_ns = 0;
  bool stopped = false;  ///< after the launcher had told it to end
};

class Supervisor {
 public:
  explicit Supervisor(const LaunchOptions& options)
      : options_(options), ends_(static_cast<std::size_t>(options.ranks)), host_(host_name()) {}

  Outcome run() {
    core::EnvironmentMap base = core::environment();
    base.insert_or_assign(kStartTimeVariable, start_time_value(user_start_time(base)));
    const std::string program = resolve(base);
    core::check_gloo_interface(base, core::network_interfaces());
    StorePort store = reserve_store_port(options_.port, options_.listen);
    const ScratchFolder scratch(core::value_or(base, "TMPDIR", "/tmp"), options_.ranks);
    job_ = {options_.job_id.empty() ? made_up_job_id() : options_.job_id, options_.ranks,
            store.port, store.socket.get(), scratch.path()};
    const std::string notice = share_threads(base, options_.ranks, core::usable_cores());
    if (!notice.empty() && core::value_or(options_.extra, "OMP_NUM_THREADS").empty())
      say(Level::info, notice);
    open_relays();

    const Subreaper subreaper(job_.id);
    SignalRelay signals;
    GuardianOptions plan{.ranks = programs(program, base),
                         .grace = options_.grace,
                         .scratch_folder = scratch.path()};
    for (const LineRelay& relay : relays_) plan.close_in_guardian.push_back(relay.read_end());
    ::pthread_sigmask(SIG_SETMASK, nullptr, &plan.rank_signal_mask);
    start_ns_ = realtime_ns();
    if (options_.max_time) time_limit_ = Clock::now() + *options_.max_time;
    {
      Guardian guardian(plan);
      for (LineRelay& relay : relays_) relay.close_write_end();
      if (options_.listen) store.socket.close();  // when rank 0 is gone, nobody must take calls
      watch(guardian, signals);
      if (!all_gone_) guardian_lost(guardian.pid());
    }
    if (!all_gone_) subreaper.sweep();
    for (LineRelay& relay : relays_) relay.drain();
    Outcome outcome = conclude();
    write_failure_files(outcome, base);
    tell(outcome);
    return outcome;
  }

 private:
  std::string resolve(const core::EnvironmentMap& base) const {
    if (options_.command.empty()) throw Error(Code::invalid_argument, "launch: no program given");
    if (options_.ranks < 1) {
      throw Error(Code::invalid_argument, text("launch: ", options_.ranks, " ranks asked for"),
                  "ask for 1 at least");
    }
    if (!options_.program.empty()) return options_.program;
    const std::string& name = options_.command.front();
    if (const auto file = core::find_program(name, base)) return *file;
    const bool there = fs::exists(name);
    throw Error(Code::not_found,
                text("launch ", name, there ? ": it is not executable" : ": no such program"),
                there ? text("chmod +x ", name)
                      : std::string("give its path, or put its folder into PATH"));
  }

  void open_relays() {
    if (!options_.prefix) return;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      relays_.emplace_back(text("[r", rank, "] "), STDOUT_FILENO);
      relays_.emplace_back(text("[r", rank, "] "), STDERR_FILENO);
    }
  }

  std::vector<RankProgram> programs(const std::string& file,
                                    const core::EnvironmentMap& base) const {
    std::vector<RankProgram> out;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      RankProgram program{.file = file, .arguments = options_.command};
      for (const auto& [name, value] : rank_environment(base, options_.extra, job_, rank)) {
        program.variables.push_back(name + "=" + value);
      }
      if (rank == 0) program.kept_descriptor = job_.store_descriptor;
      if (options_.prefix) {
        program.out = relays_[static_cast<std::size_t>(2 * rank)].write_end();
        program.err = relays_[static_cast<std::size_t>(2 * rank) + 1].write_end();
      }
      out.push_back(std::move(program));
    }
    return out;
  }

  void watch(Guardian& guardian, SignalRelay& signals) {
    while (!all_gone_) {
      std::vector<pollfd> waiting{{guardian.descriptor(), POLLIN, 0},
                                  {signals.descriptor(), POLLIN, 0}};
      for (const LineRelay& relay : relays_) waiting.push_back({relay.read_end(), POLLIN, 0});
      ::poll(waiting.data(), waiting.size(), wait_limit());
      for (std::size_t i = 0; i < relays_.size(); ++i) {
        if (waiting[i + 2].revents != 0) relays_[i].move();
      }
      while (const auto signal = signals.next()) pass_on(guardian, *signal);
      if (waiting[0].revents != 0) {
        Event event{};
        if (!guardian.receive(event)) return;
        take(event);
      }
      keep_time(guardian);
    }
  }

  [[nodiscard]] int wait_limit() const {
    std::optional<Clock::time_point> next;
    for (const auto& moment : {stop_at_, time_limit_, signal_limit_}) {
      if (moment && (!next || *moment < *next)) next = moment;
    }
    if (!next) return -1;
    return static_cast<int>(std::clamp<std::int64_t>(
        std::chrono::duration_cast<milliseconds>(*next - Clock::now()).count() + 1, 0, 60'000));
  }

  void pass_on(Guardian& guardian, int signal) {
    if (signal == SIGINT && signal_ == SIGINT) {
      say(Level::warning, "second SIGINT: killing the ranks");
      stopping_ = true;
      guardian.order({.kind = Order::Kind::kill});
      return;
    }
    const auto living =
        std::count_if(ends_.begin(), ends_.end(), [](const RankEnd& end) { return !end.ended; });
    if (living == 0) return;
    say(Level::info, text(core::signal_name(signal), " passed on to ", living,
                          living == 1 ? " rank" : " ranks"));
    guardian.order({.kind = Order::Kind::pass_signal,
                    .signal = signal,
                    .grace_ms = options_.signal_grace.count()});
    passed_.push_back(signal);
    if (!asks_to_end(signal)) return;
    signal_ = signal;
    if (!signal_limit_) signal_limit_ = Clock::now() + options_.signal_grace;
  }

  void take(const Event& event) {
    switch (event.kind) {
      case Event::Kind::all_gone:
        all_gone_ = true;
        if (event.swept > 0 && !stopping_)
          say(Level::info,
              text("ended ", event.swept, " processes that the ranks had left behind"));
        if (event.count > 0) {
          say(Level::warning,
              text(event.count, " processes do not end even on SIGKILL (they hang in the kernel)"));
        }
        break;
      case Event::Kind::not_started:
        stopping_ = true;
        failures_.push_back({.rank = event.rank,
                             .host = host_,
                             .exit_code = 127,
                             .code = "io",
                             .message = text("start ", options_.command.front(), ": ",
                                             std::generic_category().message(event.status)),
                             .seconds = since_start(event.time_ns)});
        ends_[static_cast<std::size_t>(event.rank)].ended = true;
        break;
      case Event::Kind::ended: rank_ended(event); break;
    }
  }

  void rank_ended(const Event& event) {
    RankEnd& end = ends_[static_cast<std::size_t>(event.rank)];
    end.ended = true;
    end.time_ns = event.time_ns;
    end.stopped = stopping_;
    if (WIFSIGNALED(event.status)) {
      end.signal = WTERMSIG(event.status);
    } else {
      end.exit_code = WEXITSTATUS(event.status);
    }
    if (!stop_at_ && !stopping_ && failure_of(event.rank)) stop_at_ = Clock::now() + kSettle;
  }

  void keep_time(Guardian& guardian) {
    const auto now = Clock::now();
    if (stopping_ || all_gone_) return;
    const bool too_long = time_limit_ && now >= *time_limit_;
    if (too_long) {
      failures_.push_back(
          {.host = host_,
           .code = "timeout",
           .message = text("the job ran for its whole --max-time of ",
                           std::chrono::duration<double>(*options_.max_time).count(), " s"),
           .hint = "raise --max-time, or give the job less to do",
           .seconds = since_start(realtime_ns())});
    }
    if (too_long || (stop_at_ && now >= *stop_at_) || (signal_limit_ && now >= *signal_limit_)) {
      stopping_ = true;
      stop_at_ = time_limit_ = signal_limit_ = std::nullopt;
      guardian.order({.kind = Order::Kind::stop, .grace_ms = options_.grace.count()});
    }
  }

  void guardian_lost(pid_t guardian) {
    stopping_ = true;
    failures_.push_back(
        {.host = host_,
         .code = "internal",
         .message = text("the guardian (pid ", guardian, ") was killed, and the ranks with it"),
         .hint = "possibly out of memory: read the kernel's log (dmesg)",
         .seconds = since_start(realtime_ns())});
  }

  [[nodiscard]] double since_start(std::int64_t time_ns) const {
    return std::max(0.0, static_cast<double>(time_ns - start_ns_) * 1e-9);
  }

  /// How a rank that has ended failed; nothing if it ended well, was stopped, or obeyed a signal.
  [[nodiscard]] std::optional<Failure> failure_of(int rank) const {
    const RankEnd& end = ends_[static_cast<std::size_t>(rank)];
    if (!end.ended || (end.exit_code == 0 && end.signal == 0)) return std::nullopt;
    const fs::path path = error_file(job_, rank);
    auto failure = read_error_file(path);
    if (!failure && (end.stopped || obeyed_signal(end) != 0)) return std::nullopt;
    const bool told = failure.has_value();
    if (!told) failure.emplace();
    failure->rank = rank;
    failure->host = host_;
    failure->exit_code = end.exit_code;
    failure->signal = end.signal;
    failure->seconds = since_start(end.time_ns);
    struct stat info{};
    if (told && ::stat(path.c_str(), &info) == 0) {
      failure->seconds = since_start(
          static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec);
    }
    return failure;
  }

  /// The signal that the rank ended by in good order: it exited with 128+n, or a signal that was
  /// passed on ended it.
  [[nodiscard]] int obeyed_signal(const RankEnd& end) const {
    const bool passed = std::find(passed_.begin(), passed_.end(), end.signal) != passed_.end();
    if (end.signal != 0) return passed ? end.signal : 0;
    if (end.exit_code > 128 && is_passed_on(end.exit_code - 128)) return end.exit_code - 128;
    return signal_;  // a non-zero code after a signal that asks to end
  }

  Outcome conclude() {
    Outcome outcome;
    int obeyed = 0;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const RankEnd& end = ends_[static_cast<std::size_t>(rank)];
      if (auto failure = failure_of(rank)) {
        failures_.push_back(std::move(*failure));
      } else if (!end.ended || (end.stopped && (end.exit_code != 0 || end.signal != 0))) {
        outcome.stopped.push_back(rank);
      } else if (end.exit_code != 0 || end.signal != 0) {
        obeyed = std::max(obeyed, obeyed_signal(end));
      }
    }
    choose_root_cause(std::move(failures_), outcome);
    const bool done = options_.zero_is_done && std::all_of(ends_.begin(), ends_.end(), ended_well);
    outcome.exit_code = exit_code(outcome, signal_ != 0 && !done ? signal_ : obeyed);
    return outcome;
  }

  static bool ended_well(const RankEnd& end) {
    return end.ended && end.exit_code == 0 && end.signal == 0;
  }

  static int exit_code(const Outcome& outcome, int signal) {
    if (outcome.root_cause) {
      const int code = outcome.root_cause->exit_code;
      return code >= 2 && code <= 4 ? code : 1;
    }
    return signal != 0 ? 128 + signal : 0;
  }

  void write_failure_files(const Outcome& outcome, const core::EnvironmentMap& base) const {
    if (!outcome.root_cause) return;
    std::vector<fs::path> paths{options_.failure_file, core::value_or(base, "YOKE_FAILURE_FILE")};
    for (const fs::path& path : paths) {
      if (path.empty()) continue;
      try {
        write_failure_file(path, outcome, job_.id);
        say(Level::info, text("failure written to ", path.string()));
      } catch (const Error& error) {
        say(Level::warning, error.what());
      }
    }
  }

  /// The cause comes last, where people look.
  void tell(const Outcome& outcome) const {
    if (!outcome.root_cause) {
      if (outcome.exit_code > 128)
        say(Level::warning, text("stopped by ", core::signal_name(outcome.exit_code - 128)));
      return;
    }
    const Failure& cause = *outcome.root_cause;
    for (const Failure& failure : outcome.follow_ups)
      say(Level::warning, text("follow-up: ", describe(failure)));
    const auto failed = std::count_if(outcome.follow_ups.begin(), outcome.follow_ups.end(),
                                      [](const Failure& failure) { return failure.rank >= 0; }) +
                        (cause.rank >= 0 ? 1 : 0);
    std::string line = text(failed, " of ", options_.ranks, " ranks failed");
    if (cause.rank >= 0) {
      Failure ending = cause;
      ending.message.clear();
      std::string first = describe(ending);
      line += "; first " + first.substr(0, first.find(" / "));
    }
    if (!outcome.stopped.empty()) {
      std::vector<std::string> names;
      for (const int rank : outcome.stopped) names.push_back(std::to_string(rank));
      line += text("; stopped: ", core::joined(names));
    }
    say(Level::warning, line);
    say(Level::error, describe(cause));
  }

  const LaunchOptions& options_;
  std::vector<RankEnd> ends_;
  std::string host_;
  JobFacts job_;
  std::deque<LineRelay> relays_;  // [2 * rank] standard output, [2 * rank + 1] standard error
  std::vector<Failure> failures_;
  std::vector<int> passed_;
  std::int64_t start_ns_ = 0;
  int signal_ = 0;  // the last that asked to end
  bool stopping_ = false;
  bool all_gone_ = false;
  std::optional<Clock::time_point> stop_at_;
  std::optional<Clock::time_point> time_limit_;
  std::optional<Clock::time_point> signal_limit_;
};

}  // namespace

Outcome supervise(const LaunchOptions& options) { return Supervisor(options).run(); }

}  // namespace yoke::launch
