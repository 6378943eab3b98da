#include <string>
#include <vector>

#include "command.hpp"
#include "torch_program.hpp"

namespace yoke::cli {

// A program of its own: the image libraries would make `yoke --help` slower.
int data_command(const std::vector<std::string>& words) {
  become(find_plain_program("yoke-data"), words);
}

}  // namespace yoke::cli
