// A launcher to be sent signals: launch_actor RANKS JOB_ID GRACE_MS [OPTION...] COMMAND...; exits
// with the outcome's code. An option is prefix, or log-dir=, show=, redirects= with a value.

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
  char** word = argv + 4;
  for (; *word != nullptr; ++word) {
    const std::string option = *word;
    const std::string value = option.substr(option.find('=') + 1);
    if (option == "prefix")
      options.output.prefix = true;
    else if (option.starts_with("log-dir="))
      options.output.folder = value;
    else if (option.starts_with("show="))
      options.output.show = yoke::launch::rank_set(value, "show");
    else if (option.starts_with("redirects="))
      options.output.redirects = yoke::launch::stream_choice(value, "redirects");
    else
      break;
  }
  for (; *word != nullptr; ++word) options.command.emplace_back(*word);
  return yoke::launch::supervise(options).exit_code;
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 100;
}
