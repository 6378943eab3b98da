#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace yoke::parallel {

/// One thread that runs what it is given, one thing at a time.
///
/// Owns: the thread. Threads: begin() and finish() from one caller.
class DeviceThread {
 public:
  /// `on_start` runs first in the thread: its device, its number of intra-op threads.
  explicit DeviceThread(std::function<void()> on_start);
  ~DeviceThread();  ///< lets the running work end
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  void begin(std::function<void()> work);
  /// Waits for the work; gives back what it threw.
  [[nodiscard]] std::exception_ptr finish();

 private:
  void loop();

  std::function<void()> on_start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  std::exception_ptr error_;
  bool busy_ = false;
  bool closing_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace yoke::parallel
