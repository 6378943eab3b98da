#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "launch_options.hpp"
#include "spawn_script.hpp"
#include "torch_program.hpp"
#include "yoke/cluster/http_call.hpp"
#include "yoke/cluster/run_node.hpp"
#include "yoke/cluster/secret.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/nvml.hpp"
#include "yoke/device/visible.hpp"
#include "yoke/launch/core_binding.hpp"
#include "yoke/launch/store_port.hpp"

namespace yoke::cli {
namespace {

using core::text;

/// Another launcher (srun, mpirun, a Kubernetes job) that started one task on each of several
/// machines: those are the nodes, and the user need not say them again. What RANK and WORLD_SIZE
/// say does not matter: the ranks get new ones.
void take_nodes(LaunchRequest& request, core::EnvironmentMap variables) {
  if (request.says_nodes || request.standalone || !request.hosts.empty()) return;
  for (const char* name : {"RANK", "WORLD_SIZE", "YOKE_JOB_ID", "TORCHELASTIC_RUN_ID"})
    variables.erase(name);
  const core::RankFacts facts = core::rank_facts(variables);
  if (facts.world_size == 1) return;
  if (facts.local_world_size > 1 || facts.node_count != facts.world_size) {
    throw Error(
        Code::unsupported,
        text("yoke launch: this is rank ", facts.rank, " of ", facts.world_size, " of ",
             facts.launcher, ", several of them on one machine, and each would start ranks"),
        text("start one task on each machine (srun --ntasks-per-node=1), or the program "
             "itself by ",
             facts.launcher, ", one process per GPU; it reads the variables"));
  }
  cluster::NodeOptions& nodes = request.nodes;
  nodes.fewest = nodes.most = facts.node_count;
  nodes.node_rank = facts.node_rank;
  if (nodes.endpoint_host.empty() && nodes.master_address.empty()) {
    nodes.endpoint_host = facts.master_address;
    nodes.endpoint_port = facts.master_port;
  }
  if (request.options.job_id.empty()) request.options.job_id = facts.job_id;
  core::say(core::Level::info,
            text("machine ", facts.node_rank, " of ", facts.node_count, " by ", facts.launcher));
}

void count_ranks(LaunchRequest& request, const core::EnvironmentMap& variables) {
  if (request.ranks.empty()) {
    request.ranks = core::value_or(variables, "YOKE_RANKS");
    request.ranks_option = "YOKE_RANKS";
  }
  const launch::RankCount count =
      launch::rank_count(request.ranks, request.ranks_option, launch::machine_resources());
  if (!count.notice.empty()) core::say(core::Level::info, count.notice);
  request.options.ranks = count.ranks;
}

/// The slots that --include left of this machine.
void choose_slots(LaunchRequest& request, const core::EnvironmentMap& variables) {
  const std::string slots = core::value_or(variables, "YOKE_SLOTS");
  if (slots.empty()) return;
  const auto chosen = launch::rank_set(slots, "YOKE_SLOTS");
  request.options.extra["CUDA_VISIBLE_DEVICES"] = cluster::visible_for_slots(
      {chosen.begin(), chosen.end()}, core::value_or(variables, "CUDA_VISIBLE_DEVICES"), "here");
}

std::vector<std::string> bus_ids(const core::EnvironmentMap& variables) {
  const device::NvmlOpened opened = device::open_nvml();
  if (!opened.nvml) return {};
  std::vector<std::string> out;
  for (const device::Card& card : device::visible_cards(variables, *opened.nvml).cards)
    out.push_back(card.bus_id);
  return out;
}

void bind_ranks(LaunchRequest& request, const core::EnvironmentMap& variables) {
  if (request.bind == "none") return;
  const std::vector<int> allowed = launch::allowed_cores();
  request.options.cores =
      request.bind == "cores"
          ? launch::shared_cores(request.options.ranks, allowed)
          : launch::numa_cores(request.options.ranks, bus_ids(variables), allowed);
}

int emit(LaunchRequest& request) {
  cluster::EmitOptions& emit = request.emit;
  const auto ranks = core::parse_integer(request.ranks);
  if (!ranks || *ranks < 1) {
    throw Error(
        Code::invalid_argument,
        text("--emit ", *request.emit_form, ": how many ranks a machine has is not known here"),
        "give --nproc-per-node N, as many as one machine has GPUs");
  }
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  emit.command = request.options.command;
  emit.nodes = request.nodes.most;
  emit.fewest_nodes = request.nodes.fewest;
  emit.ranks = static_cast<int>(*ranks);
  emit.gpus = request.cpus_only ? 0 : emit.ranks;
  emit.max_restarts = request.options.restart.limit;
  emit.grace = duration_cast<seconds>(request.options.grace);
  emit.signal_grace = duration_cast<seconds>(request.options.signal_grace);
  emit.log_folder = request.options.output.folder.string();
  std::string words;
  if (*request.emit_form == "slurm") words = cluster::slurm_script(emit);
  if (*request.emit_form == "kubernetes") words = cluster::kubernetes_manifest(emit);
  if (*request.emit_form == "torchrun") words = cluster::torchrun_commands(emit);
  return std::fputs(words.c_str(), stdout) < 0 ? 1 : 0;
}

/// From one machine of the list: starts the launchers of all.
int start_hosts(const LaunchRequest& request, const core::EnvironmentMap& variables) {
  cluster::HostStart start{.hosts = cluster::chosen_hosts(request.hosts),
                           .shell = request.hosts.shell,
                           .program = std::filesystem::read_symlink("/proc/self/exe").string(),
                           .folder = std::filesystem::current_path().string(),
                           .words = request.own_words,
                           .command = request.options.command};
  start.secret = cluster::find_secret(request.nodes.secret_file, variables).bytes;
  const std::string& said = request.nodes.endpoint_host;
  const int port =
      request.nodes.endpoint_port != 0 ? request.nodes.endpoint_port : cluster::kCoordinatorPort;
  start.endpoint = text(said.empty() ? start.hosts.front().name : said, ":", port);
  return cluster::start_on_hosts(start);
}

}  // namespace

int launch_command(const std::vector<std::string>& words) {
  const core::EnvironmentMap variables = core::environment();
  LaunchRequest request = parse_launch(words, variables);
  if (request.help) {
    std::fputs(launch_usage().data(), stdout);
    return 0;
  }
  if (request.emit_form) return emit(request);
  if (!request.hosts.empty()) return start_hosts(request, variables);
  if (!request.emit.image.empty()) {
    const bool with_cards = !request.cpus_only && device::open_nvml().nvml;
    return image_command(image_run_words(request, with_cards, variables));
  }
  if (request.standalone) request.nodes.fewest = request.nodes.most = 1;
  take_nodes(request, variables);
  count_ranks(request, variables);
  choose_slots(request, variables);
  bind_ranks(request, variables);
  const bool several = request.nodes.most > 1;
  refuse_spawn_script(request.script, several ? 2 : request.options.ranks);
  if (!several) return launch::supervise(request.options).exit_code;
  return cluster::run_node({.launch = request.options,
                            .nodes = request.nodes,
                            .coordinator_program = find_plain_program("yoke-coordinator").path},
                           variables);
}

}  // namespace yoke::cli
