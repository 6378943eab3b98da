#include "launch_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::text;
using std::chrono::milliseconds;

constexpr double kMostSeconds = 1e7;

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

void set_port(LaunchRequest& request, const std::string& option, const std::string& value) {
  const auto port = core::parse_integer(value);
  if (!port || *port < 0 || *port > 65'535) {
    refuse(text(option, " '", value, "' is not a port"), "give 1 to 65535, or 0 for a free one");
  }
  if (*port > 0) request.options.port = static_cast<int>(*port);
}

void set_ranks(LaunchRequest& request, const std::string& option, const std::string& value) {
  if (value.empty())
    refuse(text(option, " has an empty value"), "allowed: a number from 1, gpu, cpu, auto");
  request.ranks = value;
  request.ranks_option = option;
}

void set_nodes(LaunchRequest&, const std::string& option, const std::string& value) {
  if (value == "1") return;
  throw Error(
      Code::unsupported,
      text("yoke launch: ", option, " ", value, ": it starts the ranks of one machine"),
      "start one rank per GPU with srun, mpirun or torchrun; the program reads their variables");
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
  request.options.job_id = value;
}

void set_failure_file(LaunchRequest& request, const std::string&, const std::string& value) {
  request.options.failure_file = value;
}

struct ValueOption {
  const char* name;
  void (*set)(LaunchRequest&, const std::string& option, const std::string& value);
};

constexpr std::array kValueOptions{
    ValueOption{"--nproc-per-node", set_ranks}, ValueOption{"--ranks", set_ranks},
    ValueOption{"--master-port", set_port},     ValueOption{"--max-time", set_max_time},
    ValueOption{"--grace", set_grace},          ValueOption{"--signal-grace", set_signal_grace},
    ValueOption{"--job-id", set_job_id},        ValueOption{"--failure-file", set_failure_file},
    ValueOption{"--nnodes", set_nodes},
};

// --standalone is torchrun's word for what is always so here; --tee its word for --prefix.
constexpr std::array kFlags{"--prefix", "--tee", "--no-python", "--standalone", "--help"};

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

bool ends_with_py(const std::string& program) { return program.ends_with(".py"); }

/// Walks the options; `at` stands on the program in the end.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  LaunchRequest read() {
    while (at_ < words_.size() && words_[at_].size() > 1 && words_[at_].starts_with('-')) {
      const std::string& word = words_[at_++];
      if (word == "--") break;
      if (word == "-m") {
        module_ = true;
        break;
      }
      option(word);
      if (request_.help) return request_;
    }
    take_program();
    return request_;
  }

 private:
  void option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = with_dashes(word.substr(0, equals));
    if (equals == std::string::npos && flag(name)) return;
    const auto* const known =
        std::find_if(kValueOptions.begin(), kValueOptions.end(),
                     [&](const ValueOption& candidate) { return name == candidate.name; });
    if (known == kValueOptions.end()) unknown_option(word);
    if (equals != std::string::npos) return known->set(request_, name, word.substr(equals + 1));
    if (at_ == words_.size()) refuse(text(name, " needs a value"), "see yoke launch --help");
    known->set(request_, name, words_[at_++]);
  }

  bool flag(const std::string& name) {
    if (name == "--prefix" || name == "--tee") return request_.options.prefix = true;
    if (name == "--no-python") return no_python_ = true;
    if (name == "--help" || name == "-h") return request_.help = true;
    return name == "--standalone";
  }

  void take_program() {
    if (at_ == words_.size()) {
      refuse(module_ ? "-m without a module" : "no program given",
             "for example: yoke launch --ranks 2 -- ./train --lr 0.1");
    }
    auto& command = request_.options.command;
    if (module_) {
      command = {"python3", "-u", "-m"};
    } else if (!no_python_ && ends_with_py(words_[at_])) {
      command = {"python3", "-u"};
    }
    command.insert(command.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  bool module_ = false;
  bool no_python_ = false;
  LaunchRequest request_;
};

}  // namespace

LaunchRequest parse_launch(const std::vector<std::string>& words) { return Reader(words).read(); }

std::string_view launch_usage() {
  return "usage: yoke launch [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
         "       yoke launch [OPTION...] -m MODULE [ARGUMENT...]\n"
         "\n"
         "Starts PROGRAM once per rank on this machine, with the variables that torchrun sets, and "
         "ends all of them\n"
         "when one fails. A PROGRAM that ends in .py is run by python3. Everything after PROGRAM "
         "is its own.\n"
         "\n"
         "  --nproc-per-node N, --ranks N   ranks: a number, gpu (one per visible GPU), cpu (one "
         "per core),\n"
         "                                  auto (gpu, else cpu); not given: one per visible GPU, "
         "else 1\n"
         "  --master-port P                 where the ranks meet on 127.0.0.1; not given: a free "
         "port\n"
         "  --max-time S                    end the job after S seconds\n"
         "  --grace S                       after a failure: S seconds from SIGTERM to SIGKILL "
         "(5)\n"
         "  --signal-grace S                after a signal was passed on: S seconds to save and "
         "leave (30)\n"
         "  --prefix, --tee                 put [r1] before each line of rank 1, through a pipe\n"
         "  --job-id NAME                   the job's name (YOKE_JOB_ID); not given: made up\n"
         "  --failure-file FILE             write the cause of a failure there, beside "
         "$YOKE_FAILURE_FILE\n"
         "  --no-python                     run a .py file as it is\n"
         "  --standalone, --nnodes 1        taken for torchrun's sake; always so\n"
         "\n"
         "exit codes: 0 all ranks ended with 0; 1 a rank failed; 2 usage, 3 this machine cannot do "
         "it, 4 do not retry\n"
         "(also if the failed rank ended with it); 128+n stopped by signal n\n";
}

}  // namespace yoke::cli
