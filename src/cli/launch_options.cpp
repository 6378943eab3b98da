#include "launch_options.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::text;
using std::chrono::milliseconds;

constexpr double kMostSeconds = 1e7;
constexpr std::int64_t kMostNodes = 100'000;

[[noreturn]] void refuse(std::string message, std::string hint) {
  throw Error(Code::invalid_argument, "yoke launch: " + std::move(message), std::move(hint));
}

milliseconds seconds_value(const std::string& option, const std::string& value) {
  double seconds = 0.0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, seconds);
  if (error != std::errc{} || stop != end || !std::isfinite(seconds) || seconds < 0.0 ||
      seconds > kMostSeconds) {
    refuse(text(option, " '", value, "' is not a number of seconds"),
           text("for example ", option, " 30"));
  }
  return milliseconds(static_cast<std::int64_t>(std::llround(seconds * 1000.0)));
}

int count_value(const std::string& option, const std::string& value, std::int64_t least = 0) {
  const auto count = core::parse_integer(value);
  if (!count || *count < least || *count > kMostNodes)
    refuse(text(option, " '", value, "' is not a number from ", least),
           text("give ", least, " or more"));
  return static_cast<int>(*count);
}

int port_value(const std::string& option, const std::string& value) {
  const auto port = core::parse_integer(value);
  if (!port || *port < 0 || *port > 65'535)
    refuse(text(option, " '", value, "' is not a port"), "give 1 to 65535, or 0 for a free one");
  return static_cast<int>(*port);
}

std::string some_value(const std::string& option, const std::string& value) {
  if (value.empty()) refuse(text(option, " has an empty value"), "see yoke launch --help");
  return value;
}

void set_port(LaunchRequest& request, const std::string& option, const std::string& value) {
  const int port = port_value(option, value);
  request.nodes.master_port = port;
  if (port > 0) request.options.port = port;
}

void set_ranks(LaunchRequest& request, const std::string& option, const std::string& value) {
  if (value.empty())
    refuse(text(option, " has an empty value"), "allowed: a number from 1, gpu, cpu, auto");
  request.ranks = value;
  request.ranks_option = option;
}

/// torchrun's N or MIN:MAX.
void set_nodes(LaunchRequest& request, const std::string& option, const std::string& value) {
  const std::size_t colon = value.find(':');
  const auto least = core::parse_integer(value.substr(0, colon));
  const auto most =
      colon == std::string::npos ? least : core::parse_integer(value.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < *least || *most > kMostNodes) {
    refuse(text(option, " '", value, "' is no number of machines"),
           "give a number from 1, or MIN:MAX, as in 2:4");
  }
  request.nodes.fewest = static_cast<int>(*least);
  request.nodes.most = static_cast<int>(*most);
  request.says_nodes = true;
}

void set_node_rank(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.nodes.node_rank = count_value(option, value);
}

void set_endpoint(LaunchRequest& request, const std::string& option, const std::string& value) {
  const std::size_t colon = value.rfind(':');
  request.nodes.endpoint_host = some_value(option, value.substr(0, colon));
  if (colon != std::string::npos)
    request.nodes.endpoint_port = port_value(option, value.substr(colon + 1));
}

void set_backend(LaunchRequest&, const std::string& option, const std::string& value) {
  for (const char* known : {"c10d", "static", "yoke", ""}) {
    if (value == known) return;
  }
  refuse(text(option, " '", value, "': the machines meet at a coordinator of Yoke's own"),
         text("leave ", option, " out; --rdzv-endpoint says where it is"));
}

/// torchrun's key=value,...; those that have a meaning here.
void set_conf(LaunchRequest& request, const std::string& option, const std::string& value) {
  milliseconds keep_alive{5'000};
  int missed = 3;
  for (const std::string& item : core::split(value, ',')) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    if (key.empty() && equals == std::string::npos) continue;
    if (equals == std::string::npos)
      refuse(text(option, " '", item, "' has no value"), "give KEY=VALUE,...");
    const std::string own = item.substr(equals + 1);
    if (key == "join_timeout" || key == "timeout")
      request.nodes.join_timeout = seconds_value(option + " " + key, own);
    if (key == "last_call_timeout")
      request.nodes.last_call = seconds_value(option + " " + key, own);
    if (key == "rank") request.nodes.node_rank = count_value(option + " " + key, own);
    if (key == "keep_alive_interval") keep_alive = seconds_value(option + " " + key, own);
    if (key == "keep_alive_max_attempt") missed = count_value(option + " " + key, own, 1);
  }
  request.nodes.lost_after = keep_alive * missed;
  if (request.nodes.lost_after < milliseconds(1'000))
    refuse(text(option, " '", value, "': a machine would be lost within a second"),
           "torchrun's keep_alive_interval=5,keep_alive_max_attempt=3 make 15 s");
}

void set_master_address(LaunchRequest& request, const std::string& option,
                        const std::string& value) {
  request.nodes.master_address = some_value(option, value);
}

void set_local_address(LaunchRequest& request, const std::string& option,
                       const std::string& value) {
  request.nodes.own_address = some_value(option, value);
}

void set_interface(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.nodes.interface = some_value(option, value);
}

void set_secret_file(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.nodes.secret_file = some_value(option, value);
}

void set_hostfile(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.hosts.file = some_value(option, value);
}

void set_hosts(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.hosts.list = some_value(option, value);
}

void set_include(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.hosts.include = some_value(option, value);
}

void set_ssh(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.hosts.shell = some_value(option, value);
}

void set_max_time(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.max_time = seconds_value(option, value);
}

void set_grace(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.grace = seconds_value(option, value);
}

void set_signal_grace(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.signal_grace = seconds_value(option, value);
}

void set_job_id(LaunchRequest& request, const std::string& option, const std::string& value) {
  if (value.empty() || value.find('/') != std::string::npos) {
    refuse(text(option, " '", value, "' is no name"), "use letters, digits, - and _");
  }
  if (option != "--job-id" && value == "none") return;  // torchrun's default
  request.options.job_id = value;
}

void set_failure_file(LaunchRequest& request, const std::string&, const std::string& value) {
  request.options.failure_file = value;
}

void set_max_restarts(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.restart.limit = count_value(option, value);
}

void set_restart_window(LaunchRequest& request, const std::string& option,
                        const std::string& value) {
  request.options.restart.window = seconds_value(option, value);
}

void set_no_progress(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.restart.without_progress = count_value(option, value);
}

void set_fewest_ranks(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.fewest_ranks = count_value(option, value, 1);
}

void set_role(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.role = some_value(option, value);
}

void set_log_dir(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.output.folder = some_value(option, value);
}

void set_redirects(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.output.redirects = launch::stream_choice(value, option);
}

void set_tee(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.output.tee = launch::stream_choice(value, option);
}

void set_show(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.options.output.show = launch::rank_set(value, option);
}

void set_local_filter(LaunchRequest& request, const std::string& option, const std::string& value) {
  if (!value.empty()) request.options.output.local_filter = launch::rank_set(value, option);
}

void set_hang_limit(LaunchRequest& request, const std::string& option, const std::string& value) {
  const milliseconds limit = seconds_value(option, value);
  if (limit.count() == 0) {
    request.options.hang.reset();
  } else {
    request.options.hang = launch::HangWatch::Options{.limit = limit};
  }
}

void set_on_hang(LaunchRequest& request, const std::string& option, const std::string& value) {
  if (value != "report" && value != "stop")
    refuse(text(option, " '", value, "' is neither report nor stop"),
           "report goes on, stop ends the job");
  request.options.stop_on_hang = value == "stop";
}

void set_binding(LaunchRequest& request, const std::string& option, const std::string& value) {
  // torchrun's names, and ours.
  const std::string wanted = value == "node" || value == "socket"              ? "numa"
                             : value == "exclusive" || value == "core-complex" ? "cores"
                                                                               : value;
  if (wanted != "none" && wanted != "numa" && wanted != "cores") {
    refuse(text(option, " '", value, "' is no binding"),
           "none; numa: the cores beside the rank's card; cores: an equal share of them");
  }
  request.bind = wanted;
}

void set_emit(LaunchRequest& request, const std::string& option, const std::string& value) {
  for (const char* known : {"slurm", "kubernetes", "torchrun"}) {
    if (value == known) request.emit_form = value;
  }
  if (!request.emit_form)
    refuse(text(option, " '", value, "' is no form"), "known: slurm, kubernetes, torchrun");
}

template <std::string cluster::EmitOptions::* member>
void set_emit_text(LaunchRequest& request, const std::string& option, const std::string& value) {
  request.emit.*member = some_value(option, value);
}

void set_flavour(LaunchRequest& request, const std::string& option, const std::string& value) {
  if (value != "job" && value != "jobset" && value != "kubeflow")
    refuse(text(option, " '", value, "' is no kind"), "known: job, jobset, kubeflow");
  request.emit.kind = value;
}

/// torchrun has it, and here it is always so, or means nothing.
void ignore(LaunchRequest&, const std::string&, const std::string&) {}

struct ValueOption {
  const char* name;
  void (*set)(LaunchRequest&, const std::string& option, const std::string& value);
  bool torchruns = false;  // then PET_<NAME> sets it too
};

constexpr std::array kValueOptions{
    ValueOption{"--nproc-per-node", set_ranks, true},
    ValueOption{"--ranks", set_ranks},
    ValueOption{"--nnodes", set_nodes, true},
    ValueOption{"--node-rank", set_node_rank, true},
    ValueOption{"--rdzv-endpoint", set_endpoint, true},
    ValueOption{"--rdzv-backend", set_backend, true},
    ValueOption{"--rdzv-id", set_job_id, true},
    ValueOption{"--rdzv-conf", set_conf, true},
    ValueOption{"--master-addr", set_master_address, true},
    ValueOption{"--master-port", set_port, true},
    ValueOption{"--local-addr", set_local_address, true},
    ValueOption{"--max-restarts", set_max_restarts, true},
    ValueOption{"--role", set_role, true},
    ValueOption{"--log-dir", set_log_dir, true},
    ValueOption{"--redirects", set_redirects, true},
    ValueOption{"--tee", set_tee, true},
    ValueOption{"--local-ranks-filter", set_local_filter, true},
    ValueOption{"--numa-binding", set_binding, true},
    ValueOption{"--monitor-interval", ignore, true},
    ValueOption{"--start-method", ignore, true},
    ValueOption{"--event-log-handler", ignore, true},
    ValueOption{"--logs-specs", ignore, true},
    ValueOption{"--signals-to-handle", ignore, true},
    ValueOption{"--bind", set_binding},
    ValueOption{"--interface", set_interface},
    ValueOption{"--secret-file", set_secret_file},
    ValueOption{"--hostfile", set_hostfile},
    ValueOption{"--hosts", set_hosts},
    ValueOption{"--include", set_include},
    ValueOption{"--ssh", set_ssh},
    ValueOption{"--max-time", set_max_time},
    ValueOption{"--grace", set_grace},
    ValueOption{"--signal-grace", set_signal_grace},
    ValueOption{"--restart-window", set_restart_window},
    ValueOption{"--no-progress", set_no_progress},
    ValueOption{"--min-ranks", set_fewest_ranks},
    ValueOption{"--job-id", set_job_id},
    ValueOption{"--failure-file", set_failure_file},
    ValueOption{"--show", set_show},
    ValueOption{"--hang-timeout", set_hang_limit},
    ValueOption{"--on-hang", set_on_hang},
    ValueOption{"--emit", set_emit},
    ValueOption{"--kind", set_flavour},
    ValueOption{"--image", set_emit_text<&cluster::EmitOptions::image>},
    ValueOption{"--name", set_emit_text<&cluster::EmitOptions::name>},
    ValueOption{"--partition", set_emit_text<&cluster::EmitOptions::partition>},
    ValueOption{"--account", set_emit_text<&cluster::EmitOptions::account>},
    ValueOption{"--qos", set_emit_text<&cluster::EmitOptions::qos>},
    ValueOption{"--time", set_emit_text<&cluster::EmitOptions::time>},
    ValueOption{"--constraint", set_emit_text<&cluster::EmitOptions::constraint>},
    ValueOption{"--slurm", set_emit_text<&cluster::EmitOptions::slurm>},
    ValueOption{"--shm-size", set_emit_text<&cluster::EmitOptions::shared_memory>},
};

constexpr std::array kFlags{"--prefix",   "--no-python", "--standalone", "--module",
                            "--run-path", "--cpu",       "--help"};

[[noreturn]] void unknown_option(const std::string& name) {
  std::vector<std::string> known(kFlags.begin(), kFlags.end());
  std::transform(kValueOptions.begin(), kValueOptions.end(), std::back_inserter(known),
                 [](const ValueOption& option) { return std::string(option.name); });
  refuse(text("unknown option ", name),
         core::nearest(name, known)
             ? core::unknown_name_hint(name, known)
             : "options of the program come after its path; see yoke launch --help");
}

/// torchrun takes --nproc_per_node for --nproc-per-node; so do we.
std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// --nproc-per-node is PET_NPROC_PER_NODE.
std::string variable_of(std::string name) {
  name = name.substr(2);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return "PET_" + name;
}

bool is_true(const std::string& value) {
  return value == "1" || value == "True" || value == "true" || value == "yes";
}

/// What each machine of --hosts is told in its own way.
bool says_which_machine(const std::string& name) {
  constexpr std::array kNames{"--hosts",       "--hostfile",  "--include",
                              "--ssh",         "--node-rank", "--rdzv-endpoint",
                              "--secret-file", "--nnodes",    "--local-addr"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool ends_with_py(const std::string& program) { return program.ends_with(".py"); }

bool is_python(const std::string& program) {
  const std::size_t slash = program.rfind('/');
  return program.substr(slash == std::string::npos ? 0 : slash + 1).starts_with("python");
}

/// Walks the options; `at` stands on the program in the end.
class Reader {
 public:
  Reader(const std::vector<std::string>& words, const core::EnvironmentMap& variables)
      : words_(words), variables_(variables) {}

  LaunchRequest read() {
    read_variables();
    while (at_ < words_.size() && words_[at_].size() > 1 && words_[at_].starts_with('-')) {
      const std::size_t begin = at_;
      const std::string& word = words_[at_++];
      if (word == "--") break;
      option(word);
      if (request_.help) return request_;
      if (!word.starts_with("--image"))
        request_.words_in_image.insert(request_.words_in_image.end(), iterator(begin),
                                       iterator(at_));
    }
    request_.words_in_image.emplace_back("--");
    request_.words_in_image.insert(request_.words_in_image.end(), iterator(at_), words_.end());
    take_program();
    return request_;
  }

 private:
  [[nodiscard]] std::vector<std::string>::const_iterator iterator(std::size_t index) const {
    return words_.begin() + static_cast<std::ptrdiff_t>(index);
  }

  void read_variables() {
    for (const ValueOption& option : kValueOptions) {
      const std::string name = variable_of(option.name);
      const std::string value = option.torchruns ? core::value_or(variables_, name) : "";
      if (!value.empty()) option.set(request_, name, value);
    }
    request_.standalone = is_true(core::value_or(variables_, "PET_STANDALONE"));
    module_ = is_true(core::value_or(variables_, "PET_MODULE"));
    no_python_ = is_true(core::value_or(variables_, "PET_NO_PYTHON"));
  }

  void option(std::string word) {
    if (word == "-t") word = "--tee";
    if (word == "-r") word = "--redirects";
    const std::size_t equals = word.find('=');
    const std::string name = with_dashes(word.substr(0, equals));
    if (equals == std::string::npos && flag(name)) return;
    const auto* const known =
        std::find_if(kValueOptions.begin(), kValueOptions.end(),
                     [&](const ValueOption& candidate) { return name == candidate.name; });
    if (known == kValueOptions.end()) unknown_option(word);
    if (equals == std::string::npos && at_ == words_.size())
      refuse(text(name, " needs a value"), "see yoke launch --help");
    const std::string value = equals != std::string::npos ? word.substr(equals + 1) : words_[at_++];
    known->set(request_, name, value);
    if (!says_which_machine(name))
      request_.own_words.insert(request_.own_words.end(), {name, value});
  }

  bool flag(const std::string& name) {
    if (name == "--prefix") {
      request_.own_words.push_back(name);
      return request_.options.output.prefix = true;
    }
    if (name == "--no-python") return no_python_ = true;
    if (name == "--module" || name == "-m") return module_ = true;
    if (name == "--help" || name == "-h") return request_.help = true;
    if (name == "--cpu") return request_.cpus_only = true;
    if (name == "--standalone") return request_.standalone = true;
    return name == "--run-path";
  }

  void take_program() {
    if (at_ == words_.size()) {
      refuse(module_ ? "-m without a module" : "no program given",
             "for example: yoke launch --ranks 2 -- ./train --lr 0.1");
    }
    auto& command = request_.options.command;
    const std::string python = core::value_or(variables_, "PYTHON_EXEC", "python3");
    if (module_) {
      command = {python, "-u", "-m"};
    } else if (!no_python_ && ends_with_py(words_[at_])) {
      command = {python, "-u"};
    }
    command.insert(command.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    request_.options.python = is_python(command.front());
    if (!request_.options.python || module_) return;
    const auto script = std::find_if(command.begin() + 1, command.end(), ends_with_py);
    if (script != command.end()) request_.script = *script;
  }

  const std::vector<std::string>& words_;
  const core::EnvironmentMap& variables_;
  std::size_t at_ = 0;
  bool module_ = false;
  bool no_python_ = false;
  LaunchRequest request_;
};

}  // namespace

LaunchRequest parse_launch(const std::vector<std::string>& words,
                           const core::EnvironmentMap& variables) {
  return Reader(words, variables).read();
}

std::vector<std::string> image_run_words(const LaunchRequest& request, bool with_cards,
                                         const core::EnvironmentMap& variables) {
  std::vector<std::string> words{"run", "-i", "--gpus", with_cards ? "all" : "none"};
  constexpr std::array kPassed{"PET_", "YOKE_", "NCCL_", "GLOO_",   "OMP_",   "TORCH",
                               "RANK", "WORLD", "LOCAL", "MASTER_", "SLURM_", "JOB_COMPLETION_"};
  for (const auto& [name, value] : variables) {
    const bool passed = std::any_of(kPassed.begin(), kPassed.end(),
                                    [&](const char* prefix) { return name.starts_with(prefix); });
    // By its name only: values may be secrets, and others can read an argument.
    if (passed) words.insert(words.end(), {"-e", name});
  }
  words.insert(words.end(), {request.emit.image, "--", "yoke", "launch"});
  words.insert(words.end(), request.words_in_image.begin(), request.words_in_image.end());
  return words;
}

std::string_view launch_usage() {
  return R"(usage: yoke launch [OPTION...] [--] PROGRAM [ARGUMENT...]
       yoke launch [OPTION...] -m MODULE [ARGUMENT...]

Starts PROGRAM once per rank, with the variables that torchrun sets, and ends all of them when one
fails. A PROGRAM that ends in .py is run by python3. Everything after PROGRAM is its own.
torchrun's options are taken with its meaning, also with _ for -, and as PET_* variables.

how many
  --nproc-per-node N, --ranks N   ranks of this machine: a number, gpu (one per visible GPU), cpu (one
                                  per core), auto (gpu, else cpu); not given: one per visible GPU, else 1
  --nnodes N, MIN:MAX             machines; with MIN:MAX the job goes on with fewer of them
  --min-ranks N                   leave out a rank that is killed twice in a row, down to N
several machines (one call on each; or --hosts, from one of them)
  --rdzv-endpoint HOST[:PORT]     where they meet: the first machine (29400); or --master-addr, --master-port
  --node-rank N                   this machine's number; not given: in the order in which they come
  --hosts A,B  --hostfile FILE    start the others by ssh; lines `HOST slots=N`; --include 'A:0,2@B'
  --interface NAME|CIDR           the network to use
  --secret-file FILE              what the machines know of each other by (mode 0600); or $YOKE_SECRET;
                                  else ~/.config/yoke/secret, made at the first use
  --rdzv-conf KEY=V,...           join_timeout, last_call_timeout, keep_alive_interval (seconds),
                                  keep_alive_max_attempt: a machine is lost after interval times attempts (15)
after a failure
  --max-restarts N                start all ranks again up to N times (0)
  --restart-window S              count only restarts within S seconds
  --no-progress N                 give up (exit 4) after N attempts that came no further (3)
  --grace S                       from SIGTERM to SIGKILL (8)
  --signal-grace S                after a signal was passed on: time to save and leave (30)
  --max-time S                    end the attempt after S seconds
  --hang-timeout S                report ranks for which others wait longer than S seconds (20); 0: never
  --on-hang report|stop           whether the job goes on after such a report
output
  --log-dir DIR                   each rank's output in DIR/JOB/attempt_N/RANK/stdout.log, stderr.log
  -r, --redirects R  -t, --tee R  to files only / to files and here: 0 1 2 3, or 0:3,1:1 by local rank
  --show 0,3-5                    ranks whose output comes here; --local-ranks-filter: local ones
  --prefix                        put [r1] before each line of rank 1
  --failure-file FILE             write the cause of a failure there, beside $YOKE_FAILURE_FILE
further
  --image NAME                    start in this container (yoke image run), which has yoke in it
  --master-port P                 where the ranks meet; not given: a free port
  --bind none|numa|cores          the cores beside each rank's card, or an equal share (none)
  --job-id NAME, --rdzv-id NAME   the job's name (YOKE_JOB_ID); not given: made up
  --role NAME                     ROLE_NAME (default)
  --no-python                     run a .py file as it is
  --standalone                    one machine, whatever the environment says
write a job file in place of starting
  --emit slurm|kubernetes|torchrun  on standard output; with --name --partition --account --qos
                                  --time --constraint --slurm '...' --shm-size, --kind job|jobset|kubeflow,
                                  --cpu (no GPUs)

exit codes: 0 all ranks ended with 0; 1 a rank failed; 2 usage, 3 this machine cannot do it, 4 do not retry
(also if the failed rank ended with it); 128+n stopped by signal n
)";
}

}  // namespace yoke::cli
