#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/descriptor.hpp"

namespace yoke::launch {

// Cuts a stream into lines and puts a prefix before each. A line longer than kLongestLine is cut.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // The whole lines that `bytes` completes, each with its prefix.
  [[nodiscard]] std::string add(std::string_view bytes);

  // What stands without a line end, as a line.
  [[nodiscard]] std::string finish();

 private:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 16;

  std::string prefix_;
  std::string pending_;
};

// Writes all of it, or as much as the descriptor takes before it is closed.
void write_all(int descriptor, std::string_view bytes) noexcept;

// One pipe of a rank, whose lines go to a descriptor of ours with a prefix.
class LineRelay {
 public:
  // Errors: io.
  LineRelay(std::string prefix, int to);

  [[nodiscard]] int write_end() const noexcept { return write_.get(); }
  [[nodiscard]] int read_end() const noexcept { return read_.get(); }
  [[nodiscard]] bool is_open() const noexcept { return read_.is_open(); }

  void close_write_end() noexcept { write_.close(); }

  // Moves what is there, if anything; closes at the end of the stream.
  void move();

  // Moves what is there and the line without an end.
  void drain();

 private:
  core::Descriptor read_;
  core::Descriptor write_;
  LinePrefixer prefixer_;
  int to_;
};

}  // namespace yoke::launch
