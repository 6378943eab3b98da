// The commands that the portable front program does not have: they start programs of an installed
// Yoke.

#include <string>
#include <vector>

#include "command.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

[[noreturn]] int not_here(const char* command) {
  throw Error(Code::unsupported,
              core::text("yoke ", command,
                         ": this is the front program alone; training needs an installed Yoke"),
              "yoke image build makes an image that has one, or build it from source with "
              "tools/quickstart");
}

}  // namespace

int train_command(const std::vector<std::string>&) { not_here("train"); }
int eval_command(const std::vector<std::string>&) { not_here("eval"); }
int bench_command(const std::vector<std::string>&) { not_here("bench"); }
int checkpoint_command(const std::vector<std::string>&) { not_here("checkpoint"); }
int data_command(const std::vector<std::string>&) { not_here("data"); }

}  // namespace yoke::cli
