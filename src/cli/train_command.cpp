#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"
#include "torch_program.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/launch/launch.hpp"
#include "yoke/settings/settings.hpp"
#include "yoke/start/start.hpp"

namespace yoke::cli {
namespace {

// For its errors; what there is to say, rank 0 says.
template <class Find>
void look_at(const Find& find) {
  const core::Hush hush;
  (void)find();
}

// Ends as the ranks do. All that can be checked without torch was checked by now.
int start_ranks(const TorchProgram& program, const std::vector<std::string>& words,
                launch::LaunchOptions options) {
  options.program = program.path;
  options.command = {program.path};
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.extra.insert(program.extra.begin(), program.extra.end());
  return launch::supervise(options).exit_code;
}

}  // namespace

int train_command(const std::vector<std::string>& words) {
  const core::EnvironmentMap variables = core::environment();
  const start::Request request = start::train_request(words, variables, settings::train_schema());
  if (request.answer) return std::fputs(request.answer->c_str(), stdout) < 0 ? 1 : 0;
  const TorchProgram program = find_torch_program("yoke-train", variables);
  if (start::is_rank(variables)) become(program, words);
  launch::LaunchOptions options =
      start::rank_options(request, launch::machine_resources(), variables);
  look_at([&] { return start::find_training_data(request.values); });
  start::open_run_folder(request, variables);
  start::tell_ranks(request, options);
  return start_ranks(program, words, std::move(options));
}

int eval_command(const std::vector<std::string>& words) {
  const core::EnvironmentMap variables = core::environment();
  const start::Request request = start::eval_request(words, variables, settings::eval_schema());
  if (request.answer) return std::fputs(request.answer->c_str(), stdout) < 0 ? 1 : 0;
  const TorchProgram program = find_torch_program("yoke-eval", variables);
  if (start::is_rank(variables)) become(program, words);
  launch::LaunchOptions options =
      start::rank_options(request, launch::machine_resources(), variables);
  look_at([&] { return start::find_evaluation_data(request.values); });
  return start_ranks(program, words, std::move(options));
}

}  // namespace yoke::cli
