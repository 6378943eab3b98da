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
#include "job_end.hpp"
#include "job_report.hpp"
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
#include "yoke/core/telemetry_reader.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"
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
// The others of a rank that exited with 128+n may have had the same signal, and be saving.
constexpr milliseconds kSettleSaving{5'000};

std::int64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string count_text(int processes) {
  return text(processes, processes == 1 ? " process" : " processes");
}

std::string made_up_job_id() {
  std::random_device entropy;
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%08x%08x", entropy(), entropy());
  return out.data();
}

class Supervisor {
 public:
  explicit Supervisor(const LaunchOptions& options)
      : options_(options),
        record_{.ranks = std::vector<RankEnd>(static_cast<std::size_t>(std::max(0, options.ranks))),
                .host = host_name(),
                .zero_is_done = options.zero_is_done} {}

  Outcome run() {
    SignalRelay signals;  // to the end: a second SIGINT must not keep us from tidying up
    core::EnvironmentMap base = core::environment();
    base.insert_or_assign(kStartTimeVariable, start_time_value(user_start_time(base)));
    const std::string program = resolve(base);
    core::check_gloo_interface(base, core::network_interfaces());
    StorePort store = reserve_store_port(options_.port, options_.listen);
    ScratchFolder scratch(core::value_or(base, "TMPDIR", "/tmp"), options_.ranks);
    job_ = {options_.job_id.empty() ? made_up_job_id() : options_.job_id,
            options_.ranks,
            store.port,
            store.socket.get(),
            scratch.path(),
            core::telemetry_root(base)};
    const std::string notice = share_threads(base, options_.ranks, device::usable_cores());
    if (!notice.empty() && core::value_or(options_.extra, "OMP_NUM_THREADS").empty())
      say(Level::info, notice);
    open_relays();

    const Subreaper subreaper(job_.id);
    GuardianOptions plan{
        .ranks = programs(program, base), .grace = options_.grace, .when_abandoned = [&] {
          scratch.remove();
          core::remove_dead_telemetry(job_.telemetry_root, job_.id);
        }};
    for (const LineRelay& relay : relays_) plan.close_in_guardian.push_back(relay.read_end());
    ::pthread_sigmask(SIG_SETMASK, nullptr, &plan.rank_signal_mask);
    record_.start_ns = realtime_ns();
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
    return report(base);
  }

 private:
  Outcome report(const core::EnvironmentMap& base) const {
    Outcome outcome = conclude(record_, job_);
    add_last_steps(outcome, job_);
    core::remove_dead_telemetry(job_.telemetry_root, job_.id);
    write_failure_files(outcome, job_,
                        {options_.failure_file, core::value_or(base, "YOKE_FAILURE_FILE")});
    tell(outcome, job_);
    return outcome;
  }

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
                fs::is_directory(name) ? std::string("give a program in it: this is a folder")
                : there                ? text("chmod +x ", name)
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
    if (signal == SIGINT && record_.end_signal() == SIGINT) {
      say(Level::warning, "second SIGINT: killing the ranks");
      stopping_ = true;
      guardian.order({.kind = Order::Kind::kill});
      return;
    }
    const auto living = std::count_if(record_.ranks.begin(), record_.ranks.end(),
                                      [](const RankEnd& end) { return !end.ended; });
    if (living == 0) return;
    say(Level::info, text(core::signal_name(signal), " passed on to ", living,
                          living == 1 ? " rank" : " ranks"));
    guardian.order({.kind = Order::Kind::pass_signal,
                    .signal = signal,
                    .grace_ms = options_.signal_grace.count()});
    record_.passed_on.push_back(signal);
    if (!asks_to_end(signal)) return;
    if (!signal_limit_) signal_limit_ = Clock::now() + options_.signal_grace;
  }

  void take(const Event& event) {
    switch (event.kind) {
      case Event::Kind::all_gone:
        all_gone_ = true;
        if (event.swept > 0 && !stopping_)
          say(Level::info, text("ended what the ranks had left behind: ", count_text(event.swept)));
        if (event.count > 0) {
          say(Level::warning,
              text("left, since not even SIGKILL ends it (it hangs in the kernel): ",
                   count_text(event.count)));
        }
        break;
      case Event::Kind::not_started:
        stopping_ = true;
        record_.failures.push_back({.rank = event.rank,
                                    .host = record_.host,
                                    .exit_code = 127,
                                    .code = "io",
                                    .message = text("start ", options_.command.front(), ": ",
                                                    std::generic_category().message(event.status)),
                                    .seconds = record_.seconds_at(event.time_ns)});
        record_.ranks[static_cast<std::size_t>(event.rank)].ended = true;
        break;
      case Event::Kind::ended: rank_ended(event); break;
    }
  }

  void rank_ended(const Event& event) {
    RankEnd& end = record_.ranks[static_cast<std::size_t>(event.rank)];
    end.ended = true;
    end.time_ns = event.time_ns;
    end.stopped = stopping_;
    if (WIFSIGNALED(event.status)) {
      end.signal = WTERMSIG(event.status);
    } else {
      end.exit_code = WEXITSTATUS(event.status);
    }
    if (!stop_at_ && !stopping_ && failure_of(record_, job_, event.rank))
      stop_at_ = Clock::now() + (end.exit_code > 128 ? kSettleSaving : kSettle);
  }

  void keep_time(Guardian& guardian) {
    const auto now = Clock::now();
    if (stopping_ || all_gone_) return;
    const bool too_long = time_limit_ && now >= *time_limit_;
    if (too_long) {
      record_.failures.push_back(
          {.host = record_.host,
           .code = "timeout",
           .message = text("the job ran for its whole --max-time of ",
                           std::chrono::duration<double>(*options_.max_time).count(), " s"),
           .hint = "raise --max-time, or give the job less to do",
           .seconds = record_.seconds_at(realtime_ns())});
    }
    if (too_long || (stop_at_ && now >= *stop_at_) || (signal_limit_ && now >= *signal_limit_)) {
      stopping_ = true;
      stop_at_ = time_limit_ = signal_limit_ = std::nullopt;
      guardian.order({.kind = Order::Kind::stop, .grace_ms = options_.grace.count()});
    }
  }

  void guardian_lost(pid_t guardian) {
    stopping_ = true;
    record_.failures.push_back(
        {.host = record_.host,
         .code = "internal",
         .message = text("the guardian (pid ", guardian, ") was killed, and the ranks with it"),
         .hint = "possibly out of memory: read the kernel's log (dmesg)",
         .seconds = record_.seconds_at(realtime_ns())});
  }

  const LaunchOptions& options_;
  JobRecord record_;
  JobFacts job_;
  std::deque<LineRelay> relays_;  // [2 * rank] standard output, [2 * rank + 1] standard error
  bool stopping_ = false;
  bool all_gone_ = false;
  std::optional<Clock::time_point> stop_at_;
  std::optional<Clock::time_point> time_limit_;
  std::optional<Clock::time_point> signal_limit_;
};

}  // namespace

Outcome supervise(const LaunchOptions& options) { return Supervisor(options).run(); }

}  // namespace yoke::launch
