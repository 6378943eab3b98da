#include "device_threads.hpp"

#include <utility>

namespace yoke::parallel {

DeviceThread::DeviceThread(std::function<void()> on_start)
    : on_start_(std::move(on_start)), thread_([this] { loop(); }) {}

DeviceThread::~DeviceThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DeviceThread::begin(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    busy_ = true;
  }
  changed_.notify_all();
}

std::exception_ptr DeviceThread::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  return std::exchange(error_, nullptr);
}

void DeviceThread::loop() {
  on_start_();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || closing_; });
    if (!busy_) return;
    const std::function<void()> work = std::move(work_);
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace yoke::parallel
