#include "line_relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {

void write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // our own output is closed; the ranks go on
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string LinePrefixer::add(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    pending_ += bytes.substr(0, end);
    if (end == std::string_view::npos && pending_.size() < kLongestLine) break;
    out += prefix_ + pending_ + "\n";
    pending_.clear();
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  return out;
}

std::string LinePrefixer::finish() { return pending_.empty() ? std::string{} : add("\n"); }

LineRelay::LineRelay(std::string prefix, int to) : prefixer_(std::move(prefix)), to_(to) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(Code::io,
                core::text("start ranks: no pipe: ", std::generic_category().message(errno)));
  }
  read_ = core::Descriptor(ends[0]);
  write_ = core::Descriptor(ends[1]);
  ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
}

void LineRelay::move() {
  std::array<char, 1 << 16> block;
  const ssize_t n = ::read(read_.get(), block.data(), block.size());
  if (n > 0) {
    write_all(to_, prefixer_.add({block.data(), static_cast<std::size_t>(n)}));
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    write_all(to_, prefixer_.finish());
    read_.close();
  }
}

void LineRelay::drain() {
  if (!is_open()) return;
  std::array<char, 1 << 16> block;
  ssize_t n = 0;
  while ((n = ::read(read_.get(), block.data(), block.size())) > 0) {
    write_all(to_, prefixer_.add({block.data(), static_cast<std::size_t>(n)}));
  }
  write_all(to_, prefixer_.finish());
  read_.close();
}

}  // namespace yoke::launch
