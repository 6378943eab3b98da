// A launcher to be sent signals: launch_actor RANKS JOB_ID GRACE_MS COMMAND...; exits with the
// outcome's code.

#include <unistd.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "yoke/core/console.hpp"
#include "yoke/launch/launch.hpp"

int main(int, char** argv) try {
  yoke::core::attach(std::make_shared<yoke::core::StreamConsole>(STDERR_FILENO));
  yoke::launch::LaunchOptions options;
  options.ranks = std::stoi(argv[1]);
  options.job_id = argv[2];
  options.grace = std::chrono::milliseconds(std::stoi(argv[3]));
  for (char** word = argv + 4; *word != nullptr; ++word) options.command.emplace_back(*word);
  return yoke::launch::supervise(options).exit_code;
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 100;
}
