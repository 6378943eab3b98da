#include "attempt.hpp"

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
#include <ctime>
#include <future>
#include <string>
#include <system_error>
#include <utility>

#include "guardian.hpp"
#include "job_end.hpp"
#include "job_report.hpp"
#include "rank_environment.hpp"
#include "rank_output.hpp"
#include "scratch_folder.hpp"
#include "stacks.hpp"
#include "subreaper.hpp"
#include "yoke/core/clock.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/telemetry_reader.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"

namespace yoke::launch {
namespace {

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
constexpr milliseconds kLookEvery{1'000};

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

std::string name_of(pid_t pid) try {
  return std::string(core::trimmed(core::read_file(text("/proc/", pid, "/comm"))));
} catch (const Error&) {
  return "gone meanwhile";
}

std::optional<core::TelemetrySnapshot> telemetry_of(const JobFacts& job, int local_rank) try {
  return core::TelemetryReader(
             core::telemetry_file(job.telemetry_root, job.id, job.global(local_rank)))
      .read();
} catch (const Error&) {
  return std::nullopt;
}

class Attempt {
 public:
  explicit Attempt(const AttemptPlan& plan)
      : plan_(plan),
        options_(plan.options),
        record_{.ranks = std::vector<RankEnd>(static_cast<std::size_t>(plan.ranks)),
                .host = host_name(),
                .zero_is_done = plan.options.zero_is_done},
        pids_(static_cast<std::size_t>(plan.ranks), -1) {
    if (options_.hang) hang_.emplace(*options_.hang);
  }

  Outcome run() {
    StorePort own;
    StorePort* store = options_.store;
    const bool hosts_store = options_.placement.node_rank == 0;
    if (store == nullptr && hosts_store) {
      own = reserve_store_port(options_.port, options_.listen, options_.placement.master_address);
      store = &own;
    }
    ScratchFolder scratch(core::value_or(plan_.variables, "TMPDIR", "/tmp"), plan_.ranks);
    job_ = facts(store, scratch.path());
    output_.emplace(options_.output, job_, plan_.variables);

    const Subreaper subreaper(job_.id);
    GuardianOptions guard{.ranks = programs(), .grace = options_.grace, .when_abandoned = [&] {
                            scratch.remove();
                            core::remove_dead_telemetry(job_.telemetry_root, job_.id);
                          }};
    guard.close_in_guardian = output_->own_ends();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &guard.rank_signal_mask);
    record_.start_ns = realtime_ns();
    if (options_.max_time) time_limit_ = Clock::now() + *options_.max_time;
    next_look_ = next_talk_ = Clock::now();
    {
      Guardian guardian(guard);
      output_->close_rank_ends();
      // When rank 0 is gone, nobody must take calls.
      if (options_.listen && store != nullptr) store->socket.close();
      watch(guardian);
      if (!all_gone_) guardian_lost(guardian.pid());
    }
    if (!all_gone_) subreaper.sweep();
    tell_stacks(/*wait=*/true);
    output_->drain();
    return concluded();
  }

 private:
  JobFacts facts(const StorePort* store, const std::filesystem::path& scratch) const {
    JobFacts job{.id = plan_.job_id,
                 .ranks = plan_.ranks,
                 .port = store != nullptr ? store->port : options_.placement.master_port,
                 .store_descriptor = store != nullptr ? store->socket.get() : -1,
                 .scratch_folder = scratch,
                 .telemetry_root = core::telemetry_root(plan_.variables),
                 .host = record_.host,
                 .role = options_.role,
                 .max_restarts = options_.max_restarts_told >= 0 ? options_.max_restarts_told
                                                                 : options_.restart.limit,
                 .python = options_.python,
                 .placement = options_.placement};
    job.placement.attempt += plan_.number;
    return job;
  }

  Outcome concluded() const {
    Outcome outcome = conclude(record_, job_);
    add_last_steps(outcome, job_);
    add_furthest_step(outcome, job_);
    core::remove_dead_telemetry(job_.telemetry_root, job_.id);
    return outcome;
  }

  std::vector<RankProgram> programs() const {
    std::vector<RankProgram> out;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      RankProgram program{.file = plan_.program, .arguments = options_.command};
      for (const auto& [name, value] : rank_environment(plan_.variables, plan_.extra, job_, rank)) {
        program.variables.push_back(name + "=" + value);
      }
      if (job_.global(rank) == 0) program.kept_descriptor = job_.store_descriptor;
      program.out = output_->descriptor(rank, Streams::out);
      program.err = output_->descriptor(rank, Streams::err);
      const auto index = static_cast<std::size_t>(rank);
      if (index < options_.cores.size()) program.cores = options_.cores[index];
      out.push_back(std::move(program));
    }
    return out;
  }

  void watch(Guardian& guardian) {
    while (!all_gone_) {
      std::vector<pollfd> waiting{{guardian.descriptor(), POLLIN, 0},
                                  {plan_.signals.descriptor(), POLLIN, 0}};
      if (options_.companion != nullptr)
        waiting.push_back({options_.companion->descriptor(), options_.companion->events(), 0});
      output_->wait_in(waiting);
      ::poll(waiting.data(), waiting.size(), wait_limit());
      output_->move();
      while (const auto signal = plan_.signals.next()) {
        news_.signals.push_back(*signal);
        pass_on(guardian, *signal);
      }
      if (waiting[0].revents != 0) {
        Event event{};
        if (!guardian.receive(event)) return;
        take(event);
      }
      const bool others_speak = waiting.size() > 2 && waiting[2].revents != 0;
      if (options_.companion != nullptr) hear_others(guardian, others_speak);
      look_for_hangs();
      keep_time(guardian);
    }
  }

  [[nodiscard]] int wait_limit() const {
    std::optional<Clock::time_point> next;
    const auto sooner = [&](const std::optional<Clock::time_point>& moment) {
      if (moment && (!next || *moment < *next)) next = moment;
    };
    for (const auto& moment : {stop_at_, time_limit_, signal_limit_}) sooner(moment);
    if (hang_) sooner(next_look_);
    if (options_.companion != nullptr) sooner(next_talk_);
    if (!next) return -1;
    return static_cast<int>(std::clamp<std::int64_t>(
        std::chrono::duration_cast<milliseconds>(*next - Clock::now()).count() + 1, 0, 60'000));
  }

  [[nodiscard]] std::ptrdiff_t living() const {
    return std::count_if(record_.ranks.begin(), record_.ranks.end(),
                         [](const RankEnd& end) { return !end.ended; });
  }

  void pass_on(Guardian& guardian, int signal) {
    if (signal == SIGINT && record_.end_signal() == SIGINT) {
      say(Level::warning, "second SIGINT: killing the ranks");
      stopping_ = true;
      guardian.order({.kind = Order::Kind::kill});
      return;
    }
    if (living() == 0) return;
    say(Level::info, text(core::signal_name(signal), " passed on to ", living(),
                          living() == 1 ? " rank" : " ranks"));
    guardian.order({.kind = Order::Kind::pass_signal,
                    .signal = signal,
                    .grace_ms = options_.signal_grace.count()});
    record_.passed_on.push_back(signal);
    if (!asks_to_end(signal)) return;
    if (!signal_limit_) signal_limit_ = Clock::now() + options_.signal_grace;
  }

  /// The other machines: what they want of us, and what they are to know.
  void hear_others(Guardian& guardian, bool ready) {
    const bool changed = !news_.signals.empty() || (news_.failed && !told_failure_);
    if (!ready && !changed && Clock::now() < next_talk_) return;
    const Companion::Word word = options_.companion->talk(news_);
    told_failure_ = news_.failed;
    news_.signals.clear();
    next_talk_ = Clock::now() + options_.companion->interval();
    for (const int signal : word.signals) {
      // A scheduler tells every machine; the ranks are to hear it once.
      const auto& before = record_.passed_on;
      if (std::find(before.begin(), before.end(), signal) == before.end())
        pass_on(guardian, signal);
    }
    if (word.stop && !stopping_) stop(guardian);
  }

  void stop(Guardian& guardian) {
    stopping_ = true;
    stop_at_ = time_limit_ = signal_limit_ = std::nullopt;
    tell_stacks(/*wait=*/true);
    guardian.order({.kind = Order::Kind::stop, .grace_ms = options_.grace.count()});
  }

  void take(const Event& event) {
    switch (event.kind) {
      case Event::Kind::started: pids_[static_cast<std::size_t>(event.rank)] = event.status; break;
      case Event::Kind::stuck:
        say(Level::warning, text("process ", event.status, " (", name_of(event.status),
                                 ") is left: it hangs in the kernel, state ",
                                 process_state(event.status), ", and not even SIGKILL ends it"));
        break;
      case Event::Kind::all_gone:
        all_gone_ = true;
        if (event.swept > 0 && !stopping_)
          say(Level::info, text("ended what the ranks had left behind: ", count_text(event.swept)));
        break;
      case Event::Kind::not_started:
        stopping_ = true;
        record_.failures.push_back({.rank = job_.global(event.rank),
                                    .host = record_.host,
                                    .exit_code = 127,
                                    .code = "io",
                                    .message = text("start ", options_.command.front(), ": ",
                                                    std::generic_category().message(event.status)),
                                    .seconds = record_.seconds_at(event.time_ns)});
        record_.ranks[static_cast<std::size_t>(event.rank)].ended = true;
        news_.failed = true;
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
    if (stop_at_ || stopping_ || !failure_of(record_, job_, event.rank)) return;
    stop_at_ = Clock::now() + (end.exit_code > 128 ? kSettleSaving : kSettle);
    news_.failed = end.exit_code <= 128;
  }

  void keep_time(Guardian& guardian) {
    const auto now = Clock::now();
    if (stopping_ || all_gone_) return;
    const bool too_long = time_limit_ && now >= *time_limit_;
    if (too_long) {
      fail_as_launcher("timeout",
                       text("the job ran for its whole --max-time of ",
                            std::chrono::duration<double>(*options_.max_time).count(), " s"),
                       "raise --max-time, or give the job less to do");
    }
    if (too_long || (stop_at_ && now >= *stop_at_) || (signal_limit_ && now >= *signal_limit_)) {
      if (stop_at_) news_.failed = true;
      stop(guardian);
    }
  }

  void fail_as_launcher(const char* code, std::string message, std::string hint) {
    record_.failures.push_back({.host = record_.host,
                                .code = code,
                                .message = std::move(message),
                                .hint = std::move(hint),
                                .seconds = record_.seconds_at(realtime_ns())});
    news_.failed = true;
  }

  void guardian_lost(pid_t guardian) {
    stopping_ = true;
    fail_as_launcher("internal",
                     text("the guardian (pid ", guardian, ") was killed, and the ranks with it"),
                     "possibly out of memory: read the kernel's log (dmesg)");
  }

  void look_for_hangs() {
    tell_stacks(/*wait=*/false);
    if (!hang_ || stopping_ || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + kLookEvery;
    std::vector<RankView> views;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const bool ended = record_.ranks[index].ended;
      const pid_t pid = pids_[index];
      views.push_back({.rank = job_.global(rank),
                       .host = record_.host,
                       .ended = ended,
                       .state = ended || pid < 0 ? 'R' : process_state(pid),
                       .telemetry = telemetry_of(job_, rank)});
    }
    for (const HangReport& report : hang_->look(views, core::SystemClock::instance().now())) {
      say(Level::warning, text("hang: ", report.text));
      take_stacks(report);
      if (options_.stop_on_hang && !stop_at_) {
        record_.failures.push_back({.rank = report.suspects.empty() ? -1 : report.suspects.front(),
                                    .host = record_.host,
                                    .code = "timeout",
                                    .message = report.text,
                                    .hint = "the stack above tells where it stands",
                                    .seconds = record_.seconds_at(realtime_ns())});
        stop_at_ = Clock::now();
        news_.failed = true;
      }
    }
  }

  /// Beside the loop, since a debugger takes seconds.
  void take_stacks(const HangReport& report) {
    constexpr std::size_t kMostStacks = 4;
    for (const int rank : report.suspects) {
      const int local = rank - job_.placement.first_rank;
      if (local < 0 || local >= plan_.ranks || stacks_.size() >= kMostStacks) continue;
      const auto index = static_cast<std::size_t>(local);
      if (record_.ranks[index].ended || pids_[index] < 0) continue;
      stacks_.push_back(std::async(
          std::launch::async,
          [rank, pid = pids_[index], file = stack_file(job_, local), variables = plan_.variables] {
            return text("where rank ", rank, " (pid ", pid, ") stands:\n",
                        stack_of(pid, file, variables));
          }));
    }
  }

  void tell_stacks(bool wait) {
    std::erase_if(stacks_, [&](std::future<std::string>& stack) {
      if (!wait && stack.wait_for(milliseconds(0)) != std::future_status::ready) return false;
      for (const std::string& line : core::split(stack.get(), '\n')) {
        if (!line.empty()) say(Level::warning, line);
      }
      return true;
    });
  }

  const AttemptPlan& plan_;
  const LaunchOptions& options_;
  JobRecord record_;
  JobFacts job_;
  std::optional<RankOutput> output_;
  std::vector<pid_t> pids_;
  std::optional<HangWatch> hang_;
  std::vector<std::future<std::string>> stacks_;
  Companion::News news_;
  bool told_failure_ = false;
  bool stopping_ = false;
  bool all_gone_ = false;
  Clock::time_point next_look_;
  Clock::time_point next_talk_;
  std::optional<Clock::time_point> stop_at_;
  std::optional<Clock::time_point> time_limit_;
  std::optional<Clock::time_point> signal_limit_;
};

}  // namespace

Outcome run_attempt(const AttemptPlan& plan) { return Attempt(plan).run(); }

}  // namespace yoke::launch
