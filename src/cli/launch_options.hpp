#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/cluster/emit.hpp"
#include "yoke/cluster/hosts.hpp"
#include "yoke/cluster/nodes.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/launch/launch.hpp"

namespace yoke::cli {

// What the words of `yoke launch` say, and the PET_* variables behind them.
struct LaunchRequest {
  launch::LaunchOptions options;
  cluster::NodeOptions nodes;
  cluster::HostOptions hosts;
  cluster::EmitOptions emit;
  std::optional<std::string> emit_form;  // slurm, kubernetes, torchrun
  std::string script;                    // the Python file, if the program is one
  std::string ranks;                     // as given: a number, gpu, cpu, auto; empty if it was not
  std::string ranks_option = "--nproc-per-node";  // the name under which it was given
  std::string bind = "none";                      // none, numa, cores
  std::vector<std::string> own_words;             // options that hold on every machine of --hosts
  std::vector<std::string> words_in_image;        // all but --image, with the program
  bool standalone = false;
  bool says_nodes = false;  // --nnodes or PET_NNODES was given
  bool cpus_only = false;   // --cpu: no GPU is asked for in a job file
  bool help = false;
};

// Reads options up to the program; everything from there on is the program's, byte for byte.
// Errors: invalid_argument, naming the option or quoting the value.
[[nodiscard]] LaunchRequest parse_launch(const std::vector<std::string>& words,
                                         const core::EnvironmentMap& variables = {});

// The words of `yoke image run` that start the same call inside --image, with the caller's
// variables that mean something to it.
[[nodiscard]] std::vector<std::string> image_run_words(const LaunchRequest& request,
                                                       bool with_cards,
                                                       const core::EnvironmentMap& variables);

[[nodiscard]] std::string_view launch_usage();

}  // namespace yoke::cli
