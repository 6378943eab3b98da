#include "program_main.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "exit_code.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"

namespace yoke::cli {

int program_main(int argc, char** argv, int (*run)(const std::vector<std::string>& words)) {
  core::attach(std::make_shared<core::StreamConsole>(STDERR_FILENO));
  try {
    return run({argv + std::min(1, argc), argv + argc});
  } catch (const Error& error) {
    core::say(core::Level::error, error.what());
    return exit_code(error.code());
  } catch (const std::exception& error) {
    core::say(core::Level::error, error.what());
    return 1;
  }
}

}  // namespace yoke::cli
