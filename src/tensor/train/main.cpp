#include "yoke/train/main.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_parts.hpp"
#include "commands.hpp"
#include "run_rank.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/launch/self.hpp"
#include "yoke/start/start.hpp"

namespace yoke::train {
namespace {

using core::EnvironmentMap;
using start::Request;

/// One of the two commands.
struct Command {
  std::function<Request(const std::vector<std::string>& words, const EnvironmentMap& variables)>
      read;
  std::function<void(const Request& request, const EnvironmentMap& variables,
                     launch::LaunchOptions& options)>
      prepare;
  std::function<int(comm::World& world, const Request& request, const EnvironmentMap& variables)>
      on_rank;
};

std::vector<std::string> words_of(int argc, char** argv) {
  return {argv + std::min(1, argc), argv + argc};
}

std::string usage_of(int argc, char** argv) {
  const std::string program =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "program";
  return program + " [flags]";
}

/// For its errors; what there is to say, rank 0 says.
template <class Find>
void look_at(const Find& find) {
  const core::Hush hush;
  (void)find();
}

/// The ranks, or nothing where this process is to go on as the only one.
std::optional<int> run_ranks(int argc, char** argv, const Command& command, const Request& request,
                             EnvironmentMap& variables) {
  const launch::MachineResources machine = launch::machine_resources();
  launch::LaunchOptions options = start::rank_options(request, machine, variables);
  command.prepare(request, variables, options);
  if (options.ranks > 1 || options.restart.limit > 0) {
    // The variables count more than the program's own wish; a flag has counted more than they by
    // now.
    ::setenv("YOKE_RANKS", std::to_string(options.ranks).c_str(), /*overwrite=*/1);
    ::setenv("YOKE_MAX_RESTARTS", std::to_string(options.restart.limit).c_str(), /*overwrite=*/1);
    launch::SelfOptions self{
        .ranks = options.ranks, .machine = [&] { return machine; }, .launch = options};
    return launch::run_self(argc, argv, std::move(self));
  }
  // The one rank is this process: what a launcher would tell it, it tells itself.
  for (const auto& [name, value] : options.extra) {
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    variables.insert_or_assign(name, value);
  }
  if (!options.failure_file.empty())
    variables.emplace("YOKE_FAILURE_FILE", options.failure_file.string());
  return std::nullopt;
}

int run_command(int argc, char** argv, const Command& command) {
  attach_console();
  EnvironmentMap variables;
  try {
    variables = core::environment();
    const Request request = command.read(words_of(argc, argv), variables);
    if (request.answer) {
      print(*request.answer);
      return 0;
    }
    if (!start::is_rank(variables)) {
      if (const auto exit_code = run_ranks(argc, argv, command, request, variables))
        return *exit_code;
    }
    const auto on_rank = [&](comm::World& world) {
      return command.on_rank(world, request, variables);
    };
    return run_rank(on_rank, variables);
  } catch (const std::exception& error) {
    return tell(error, variables);
  }
}

}  // namespace

ModelSet builtin_models() {
  return {models::names(), [](std::string_view name, const models::InputOptions& input) {
            return AnyModule(models::make(name, input));
          }};
}

int main(int argc, char** argv, const ModelSet& models) {
  const settings::Schema schema = settings::train_schema(models.names, usage_of(argc, argv));
  return run_command(
      argc, argv,
      {.read =
           [&](const auto& words, const auto& variables) {
             return start::train_request(words, variables, schema);
           },
       .prepare =
           [](const Request& request, const EnvironmentMap& variables,
              launch::LaunchOptions& options) {
             look_at([&] { return start::find_training_data(request.values); });
             start::open_run_folder(request, variables);
             start::tell_ranks(request, options);
           },
       .on_rank =
           [&](comm::World& world, const Request& request, const EnvironmentMap& variables) {
             return train_on_rank(world, request, models, variables);
           }});
}

int eval_main(int argc, char** argv, const ModelSet& models) {
  const settings::Schema schema = settings::eval_schema(models.names, usage_of(argc, argv));
  return run_command(
      argc, argv,
      {.read = [&](const auto& words,
                   const auto& variables) { return start::eval_request(words, variables, schema); },
       .prepare =
           [](const Request& request, const EnvironmentMap&, launch::LaunchOptions&) {
             look_at([&] { return start::find_evaluation_data(request.values); });
           },
       .on_rank =
           [&](comm::World& world, const Request& request, const EnvironmentMap&) {
             evaluate_on_rank(world, request, models);
             return 0;
           }});
}

}  // namespace yoke::train
