#pragma once

#include <string>
#include <vector>

namespace yoke::cli {

// main() of this room's programs: the console is standard error, an error that comes through is
// said there and becomes the exit code. `run` gets the words after the program's name.
[[nodiscard]] int program_main(int argc, char** argv,
                               int (*run)(const std::vector<std::string>& words));

}  // namespace yoke::cli
