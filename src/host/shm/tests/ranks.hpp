#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/shm/shm.hpp"

namespace yoke::shm::testing {

/// The exchange of ranks that are threads of one process.
class ThreadExchange {
 public:
  explicit ThreadExchange(int size) : size_(static_cast<std::size_t>(size)) {}

  std::vector<std::string> gather(int rank, std::string mine) {
    std::unique_lock lock(mutex_);
    const std::size_t round = round_;
    texts_.resize(size_);
    texts_[static_cast<std::size_t>(rank)] = std::move(mine);
    if (++come_ == size_) {
      whole_ = texts_;
      come_ = 0;
      ++round_;
      changed_.notify_all();
      return whole_;
    }
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return round_ != round; })) {
      throw Error(Code::timeout, "exchange between threads: not all ranks came in 30 s");
    }
    return whole_;
  }

  Exchange of_rank(int rank) {
    return [this, rank](std::string mine) { return gather(rank, std::move(mine)); };
  }

 private:
  std::size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t come_{0};
  std::size_t round_{0};
  std::vector<std::string> texts_;
  std::vector<std::string> whole_;
};

/// What became of each rank: its error, or nothing.
using Outcomes = std::vector<std::optional<Error>>;

/// Runs `body` as each rank of a team of threads. `options` serves all; rank and size are filled
/// in.
inline Outcomes run_threads(int size, const std::function<void(Team&)>& body,
                            TeamOptions options = {.timeout = std::chrono::seconds(30)}) {
  ThreadExchange exchange(size);
  Outcomes outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      TeamOptions mine = options;
      mine.rank = rank;
      mine.size = size;
      try {
        Team team(exchange.of_rank(rank), mine);
        body(team);
      } catch (const Error& error) {
        outcomes[static_cast<std::size_t>(rank)] = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace yoke::shm::testing
