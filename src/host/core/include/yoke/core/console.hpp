#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke::core {

enum class Level { debug, info, warning, error };

/// Where a program's words go. The library never prints: it hands whole lines to the console, and a
/// program attaches one that writes (`cli`, `yoke::run` and `train::main` do).
///
/// Threads: write() from any thread.
class Console {
 public:
  Console() = default;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  virtual ~Console() = default;

  /// Takes one line without its end. Never throws: a full pipe must not end a training run.
  virtual void write(Level level, std::string_view line) noexcept = 0;
};

/// Writes to a file descriptor; warnings and errors begin with their level. Borrows the descriptor.
class StreamConsole final : public Console {
 public:
  explicit StreamConsole(int descriptor, std::string prefix = {}, Level least = Level::info);
  void write(Level level, std::string_view line) noexcept override;

 private:
  int descriptor_;
  std::string prefix_;
  Level least_;
  std::mutex mutex_;
};

/// Keeps the lines; for tests.
class RecordingConsole final : public Console {
 public:
  void write(Level level, std::string_view line) noexcept override;
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Makes `console` the process's console and returns the one before (null at first: words are
/// dropped). The process and the caller own it together.
std::shared_ptr<Console> attach(std::shared_ptr<Console> console);

/// Hands a line to the process's console, if there is one.
void say(Level level, std::string_view line) noexcept;

/// Drops the process's words while it lives: where several processes look at the same thing and one
/// of them says what there is to say.
class Hush {
 public:
  Hush() : before_(attach(nullptr)) {}
  ~Hush() { attach(std::move(before_)); }
  Hush(const Hush&) = delete;
  Hush& operator=(const Hush&) = delete;

 private:
  std::shared_ptr<Console> before_;
};

}  // namespace yoke::core
