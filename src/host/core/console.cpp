#include "yoke/core/console.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace yoke::core {
namespace {

std::mutex& slot_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::shared_ptr<Console>& slot() {
  static std::shared_ptr<Console> console;
  return console;
}

std::string_view label(Level level) {
  switch (level) {
    case Level::warning: return "warning: ";
    case Level::error: return "error: ";
    default: return "";
  }
}

}  // namespace

StreamConsole::StreamConsole(int descriptor, std::string prefix, Level least)
    : descriptor_(descriptor), prefix_(std::move(prefix)), least_(least) {}

void StreamConsole::write(Level level, std::string_view line) noexcept try {
  if (level < least_) return;
  const std::string whole = prefix_ + std::string(label(level)) + std::string(line) + "\n";
  const std::lock_guard lock(mutex_);
  std::size_t sent = 0;
  while (sent < whole.size()) {
    const ssize_t n = ::write(descriptor_, whole.data() + sent, whole.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
} catch (...) {
  // Out of memory for a line of text: the line is lost, the run goes on.
}

void RecordingConsole::write(Level level, std::string_view line) noexcept try {
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::string(label(level)) + std::string(line));
} catch (...) {
  // As above.
}

std::vector<std::string> RecordingConsole::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::shared_ptr<Console> attach(std::shared_ptr<Console> console) {
  const std::lock_guard lock(slot_mutex());
  return std::exchange(slot(), std::move(console));
}

void say(Level level, std::string_view line) noexcept try {
  std::shared_ptr<Console> console;
  {
    const std::lock_guard lock(slot_mutex());
    console = slot();
  }
  if (console) console->write(level, line);
} catch (...) {
  // A mutex that cannot be taken: the line is lost, the run goes on.
}

}  // namespace yoke::core
