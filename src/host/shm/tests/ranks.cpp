#include "ranks.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace yoke::shm::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHubLimit{60};

/// The exchange of ranks that are threads of one process.
class ThreadExchange {
 public:
  explicit ThreadExchange(int size) : texts_(static_cast<std::size_t>(size)) {}

  std::vector<std::string> gather(int rank, std::string mine) {
    std::unique_lock lock(mutex_);
    const std::size_t round = round_;
    texts_[static_cast<std::size_t>(rank)] = std::move(mine);
    if (++come_ == texts_.size()) {
      whole_ = texts_;
      come_ = 0;
      ++round_;
      changed_.notify_all();
    } else if (!changed_.wait_for(lock, kHubLimit, [&] { return round_ != round; })) {
      throw Error(Code::timeout, "exchange between threads: not all ranks came");
    }
    return whole_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t come_{0};
  std::size_t round_{0};
  std::vector<std::string> texts_;
  std::vector<std::string> whole_;
};

Outcome run_rank(const Exchange& exchange, const TeamOptions& options, const Body& body) {
  Outcome outcome;
  try {
    Team team(exchange, options);
    outcome.result = body(team);
  } catch (const Error& error) {
    outcome.error = error;
  } catch (const std::exception& error) {
    outcome.error = Error(Code::internal, error.what());
  }
  outcome.end = Clock::now();
  return outcome;
}

// Messages between a child and the test: a letter, the size, the bytes.
enum Kind : char { kExchange = 'x', kResult = 'r', kFailure = 'f' };

void write_all(int file, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(file, at, bytes, MSG_NOSIGNAL);
    if (n <= 0) throw std::runtime_error("the other side of the hub is gone");
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

bool read_all(int file, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(file, at, bytes, 0);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

void say(int file, char kind, const std::string& words) {
  const std::uint64_t bytes = words.size();
  write_all(file, &kind, 1);
  write_all(file, &bytes, sizeof(bytes));
  write_all(file, words.data(), words.size());
}

bool hear(int file, char& kind, std::string& words) {
  std::uint64_t bytes = 0;
  if (!read_all(file, &kind, 1) || !read_all(file, &bytes, sizeof(bytes))) return false;
  words.resize(bytes);
  return read_all(file, words.data(), bytes);
}

[[noreturn]] void be_child(int hub, const TeamOptions& options, const Body& body) {
  const Exchange exchange = [&](std::string mine) {
    say(hub, kExchange, mine);
    std::vector<std::string> all(static_cast<std::size_t>(options.size));
    char kind = 0;
    for (std::string& words : all) {
      if (!hear(hub, kind, words)) throw std::runtime_error("the test is gone");
    }
    return all;
  };
  const Outcome outcome = run_rank(exchange, options, body);
  if (outcome.error) {
    say(hub, kFailure, std::string(name(outcome.error->code())) + '\n' + outcome.error->message());
  } else {
    say(hub, kResult, outcome.result);
  }
  ::_exit(0);
}

/// The test's side: passes the ranks' words round and collects what became of them.
class Hub {
 public:
  Hub(int size, const Body& body, TeamOptions options) {
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
      options.rank = rank;
      options.size = size;
      const pid_t pid = ::fork();
      if (pid < 0) std::abort();  // a pid of -1 must not reach kill()
      if (pid == 0) {
        ::close(ends[0]);
        for (const Child& sibling : children_) ::close(sibling.hub);
        be_child(ends[1], options, body);
      }
      ::close(ends[1]);
      children_.push_back({.pid = pid, .hub = ends[0]});
    }
  }

  ~Hub() {
    for (const Child& child : children_) {
      ::close(child.hub);
      ::waitpid(child.pid, nullptr, 0);
    }
  }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::vector<Outcome> serve(const std::set<int>& stalled) {
    const Clock::time_point limit = Clock::now() + kHubLimit;
    while (!only_stalled_left(stalled)) {
      if (Clock::now() > limit) {
        ADD_FAILURE() << "ranks still run after " << kHubLimit.count() << " s";
        break;
      }
      listen();
    }
    std::vector<Outcome> outcomes;
    for (Child& child : children_) {
      if (!child.over) ::kill(child.pid, SIGKILL);
      outcomes.push_back(std::move(child.outcome));
    }
    return outcomes;
  }

 private:
  struct Child {
    pid_t pid{0};
    int hub{-1};
    bool over{false};
    std::optional<std::string> said{};  // in this round of the exchange
    Outcome outcome{};
  };

  bool only_stalled_left(const std::set<int>& stalled) const {
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      if (!children_[rank].over && !stalled.contains(static_cast<int>(rank))) return false;
    }
    return true;
  }

  void listen() {
    std::vector<pollfd> files;
    for (const Child& child : children_) {
      files.push_back({.fd = child.over ? -1 : child.hub, .events = POLLIN, .revents = 0});
    }
    ::poll(files.data(), files.size(), 1000);
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      if (files[rank].revents != 0) take(children_[rank]);
    }
  }

  void take(Child& child) {
    char kind = 0;
    std::string words;
    if (!hear(child.hub, kind, words)) {
      child.outcome.died = true;
      end(child);
    } else if (kind == kExchange) {
      child.said = words;
      pass_round();
    } else if (kind == kResult) {
      child.outcome.result = words;
      end(child);
    } else {
      const std::size_t line = words.find('\n');
      child.outcome.error =
          Error(core::code_from_name(words.substr(0, line)), words.substr(line + 1));
      end(child);
    }
  }

  static void end(Child& child) {
    child.over = true;
    child.outcome.end = Clock::now();
  }

  void pass_round() {
    for (const Child& child : children_) {
      if (!child.said) return;
    }
    for (const Child& to : children_) {
      for (const Child& from : children_) say(to.hub, kExchange, *from.said);
    }
    for (Child& child : children_) child.said.reset();
  }

  std::vector<Child> children_;
};

}  // namespace

TeamOptions small_options() {
  return {.timeout = std::chrono::seconds(30), .staging_bytes = 16 << 10};
}

std::vector<Outcome> run_threads(int size, const Body& body, TeamOptions options,
                                 const Tamper& tamper) {
  ThreadExchange hub(size);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    options.rank = rank;
    options.size = size;
    threads.emplace_back([&hub, &outcomes, &body, &tamper, options] {
      const int mine = options.rank;
      const Exchange exchange = [&](std::string said) {
        return hub.gather(mine, tamper ? tamper(mine, std::move(said)) : std::move(said));
      };
      outcomes[static_cast<std::size_t>(mine)] = run_rank(exchange, options, body);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<Outcome> run_processes(int size, const Body& body, TeamOptions options,
                                   const std::set<int>& stalled) {
  Hub hub(size, body, options);
  return hub.serve(stalled);
}

void expect_all_well(const std::vector<Outcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_FALSE(outcomes[rank].died) << "rank " << rank;
    EXPECT_FALSE(outcomes[rank].error.has_value())
        << "rank " << rank << ": " << outcomes[rank].error->what();
  }
}

SharedCounter::SharedCounter() {
  void* const page = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  number_ = new (page) std::atomic<int>(0);
}

SharedCounter::~SharedCounter() { ::munmap(number_, sizeof(std::atomic<int>)); }

}  // namespace yoke::shm::testing
