#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace yoke::shm {

/// Sleeps while `word` is `expected`, at most `limit`; may return early. Works between processes.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds limit) noexcept;

/// Wakes whoever sleeps on `word`.
void futex_wake(const std::atomic<std::uint32_t>& word) noexcept;

/// Tells the core that this is a spin loop.
void pause_core() noexcept;

}  // namespace yoke::shm
