#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "bench_table.hpp"
#include "command.hpp"
#include "option_words.hpp"
#include "torch_program.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/launch/rank_count.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;
using Words = std::vector<std::string>;

constexpr const char* kUsage =
    "usage: yoke bench step [--model M] [--batch-size B] [--precision P] [--capture on|off]\n"
    "                       [--kernels on|off] [--steps N] [--trace FILE] [--json]\n"
    "       yoke bench parallel [--model M] [--batch-sizes B,B...] [--precision P] [--devices N]\n"
    "                       [--steps N] [--data DIR] [--rivals|--quick-rivals]\n"
    "                       [--python PROGRAM] [--json] [--markdown]\n"
    "\n"
    "Times training steps on this machine.\n"
    "\n"
    "  step      where one step goes on one device: kernels by group, gaps, bytes and rates\n"
    "            beside what the device reaches with plain copies and products\n"
    "  parallel  the table: a single device, DataParallel and DistributedDataParallel on 1 to N\n"
    "            devices: images/s, speed-up, memory, utilisation, exposed communication\n"
    "\n"
    "  --model        resnet18 ... resnet101, small-cnn, mlp (resnet50; without a GPU small-cnn)\n"
    "  --batch-size   images per device (256; without a GPU 64)\n"
    "  --batch-sizes  of the table (32,256; without a GPU 64)\n"
    "  --precision    auto, fp32, tf32, bf16, fp16 (auto)\n"
    "  --devices      the most GPUs, or ranks on CPU cores (all GPUs; without one 2)\n"
    "  --data         real images through the loader, and the time of an epoch\n"
    "  --rivals       PyTorch beside it: eager, CUDA graph, torch.compile, nn.DataParallel, DDP\n"
    "  --quick-rivals the same without max-autotune, which takes minutes\n"
    "  --python       the one that has torch and torchvision (python3)\n"
    "\n"
    "exit codes: 0 done; 1 a row could not be measured; 2 usage\n";

[[noreturn]] void refuse(const std::string& option, const std::string& value,
                         const std::string& hint) {
  throw Error(Code::invalid_argument,
              text("yoke bench: ", option, " '", value, "' is not understood"), hint);
}

int whole(const std::string& option, const std::string& value) {
  const auto number = core::parse_integer(value);
  if (!number || *number < 1 || *number > 100'000)
    refuse(option, value, "give a number from 1 to 100000");
  return static_cast<int>(*number);
}

std::string one_of(const OptionWords& words, const std::string& option,
                   const std::string& otherwise, const Words& known) {
  const std::string value = words.value(option).value_or(otherwise);
  if (std::ranges::find(known, value) == known.end())
    refuse(option, value, core::unknown_name_hint(value, known));
  return value;
}

// What both benchmarks time.
struct Subject {
  int gpus = 0;  // of this machine
  std::string model{};
  std::string precision{};
  int steps = 0;

  Subject(const OptionWords& words) : gpus(launch::machine_resources().gpus) {
    model =
        one_of(words, "--model", gpus > 0 ? "resnet50" : "small-cnn", settings::builtin_models());
    precision = one_of(words, "--precision", "auto", {"auto", "fp32", "tf32", "bf16", "fp16"});
    steps = whole("--steps", words.value("--steps").value_or(gpus > 0 ? "100" : "30"));
  }

  [[nodiscard]] Words words(const std::string& ways, std::int64_t batch) const {
    return {"--model",     model,
            "--precision", precision,
            "--steps",     std::to_string(steps),
            "--ways",      ways,
            "--batch",     std::to_string(batch)};
  }
};

void require_no_rest(const OptionWords& words) {
  if (!words.rest.empty()) refuse("the word", words.rest[0], "see yoke bench --help");
}

int bench_step(const Words& arguments) {
  const OptionWords words =
      read_options({.command = "yoke bench step",
                    .values = {"--model", "--batch-size", "--precision", "--capture", "--kernels",
                               "--steps", "--trace"},
                    .flags = {"--json", "--help"}},
                   arguments);
  if (words.has("--help")) return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  require_no_rest(words);
  const Subject subject(words);
  const int batch =
      whole("--batch-size", words.value("--batch-size").value_or(subject.gpus > 0 ? "256" : "64"));
  const bool capture = one_of(words, "--capture", "on", {"on", "off"}) == "on";
  const std::string kernels = one_of(words, "--kernels", "on", {"on", "off"});
  Words call{words.has("--json") ? "report-json" : "report"};
  const Words rest = subject.words(capture && subject.gpus > 0 ? "none+graph" : "none", batch);
  call.insert(call.end(), rest.begin(), rest.end());
  call.insert(call.end(), {"--kernels", kernels});
  if (const auto file = words.value("--trace")) call.insert(call.end(), {"--trace", *file});
  become(find_torch_program("yoke-bench", core::environment()), call);
}

// A folder of this run's own, gone at the end.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / text("yoke-bench-", ::getpid())) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct ParallelRequest {
  Subject subject;
  std::vector<int> batches{};
  int devices = 1;
  std::string data{};  // empty: data that lies ready
  bool rivals = false;
  bool max_autotune = false;  // among them
  std::string python = "python3";
};

// The last line of `out` that is a JSON object; discarded if there is none.
Json last_object(const std::string& out) {
  Json found(Json::value_t::discarded);
  for (const std::string& line : core::split(out, '\n')) {
    if (!line.starts_with("{")) continue;
    Json parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_discarded()) found = std::move(parsed);
  }
  return found;
}

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : core::split(text, '\n')) {
    const bool says_something = line.find_first_of("abcdefghijklmnopqrstuvwxyz") != line.npos;
    if (says_something) last = line;
  }
  return last;
}

// Measures row after row, each in processes of its own.
class ParallelBench {
 public:
  explicit ParallelBench(ParallelRequest request)
      : request_(std::move(request)),
        self_(fs::read_symlink("/proc/self/exe").string()),
        program_(find_torch_program("yoke-bench", core::environment())) {}

  BenchTable run() {
    for (const int batch : request_.batches) {
      for (const int devices : device_counts()) measure(batch, devices);
    }
    return std::move(table_);
  }

 private:
  [[nodiscard]] bool on_cards() const { return request_.subject.gpus > 0; }

  // 1, 2, 4 and so on, and the most.
  [[nodiscard]] std::vector<int> device_counts() const {
    std::vector<int> counts;
    for (int n = 1; n < request_.devices; n *= 2) counts.push_back(n);
    counts.push_back(request_.devices);
    return counts;
  }

  void measure(int batch, int devices) {
    const std::vector<bool> captures =
        on_cards() ? std::vector<bool>{false, true} : std::vector<bool>{false};
    for (const bool captured : captures) {
      if (devices == 1) ours({.way = "single", .captured = captured, .batch = batch}, "none");
      if (!captured && (on_cards() || devices == 1)) {
        ours({.way = "DataParallel", .devices = devices, .batch = batch}, "dp");
      }
      ours({.way = "DDP", .captured = captured, .devices = devices, .batch = batch}, "ddp");
    }
    if (request_.rivals) rivals(batch, devices);
  }

  void ours(BenchRow row, const std::string& way) {
    if (!request_.data.empty()) return train(std::move(row), way);
    const bool one_process = way == "dp";
    const std::int64_t batch = one_process ? row.batch * row.devices : row.batch;
    Words command{self_, "launch",     "--ranks", std::to_string(one_process ? 1 : row.devices),
                  "--",  program_.path};
    const Words rest = request_.subject.words(way + (row.captured ? "+graph" : ""), batch);
    command.insert(command.end(), rest.begin(), rest.end());
    command.insert(command.end(), {"--devices", std::to_string(row.devices), "--profile", "on"});
    core::EnvironmentMap variables = core::environment();
    variables.insert(program_.extra.begin(), program_.extra.end());
    add(std::move(row), command, variables);
  }

  // `yoke train` on real data: its own loader, one epoch or so many steps.
  void train(BenchRow row, const std::string& way) {
    const bool one_process = way == "dp";
    if (!one_process && row.captured != on_cards()) return;  // as `yoke train` runs by itself
    const std::int64_t batch = one_process ? row.batch * row.devices : row.batch;
    const fs::path out = scratch_.path() / text("run", table_.rows().size());
    Words devices;
    for (int i = 0; i < row.devices; ++i) devices.push_back(std::to_string(i));
    Words command{self_,          "train",
                  "--data",       request_.data,
                  "--model",      request_.subject.model,
                  "--batch-size", std::to_string(batch),
                  "--parallel",   way,
                  "--precision",  request_.subject.precision,
                  "--epochs",     "1",
                  "--max-steps",  std::to_string(request_.subject.steps),
                  "--json",       "--out",
                  out.string()};
    if (!one_process) command.insert(command.end(), {"--ranks", std::to_string(row.devices)});
    if (one_process && on_cards())
      command.insert(command.end(), {"--device-ids", core::joined(devices, ",")});
    const Json result = child(command, core::environment(), row.trouble);
    if (row.trouble.empty()) {
      row.images_per_second = result.at("images_per_second");
      row.step_ms = 1000.0 * static_cast<double>(row.batch * row.devices) / row.images_per_second;
      row.epoch_seconds = result.at("training_images").get<double>() / row.images_per_second;
    }
    note(std::move(row));
  }

  void rivals(int batch, int devices) {
    const std::string script = peers_script();
    const auto call = [&](BenchRow row, const Words& extra, int ranks, std::int64_t total) {
      row.rival = true;
      row.batch = batch;
      row.devices = devices;
      Words command{request_.python};
      if (ranks > 1) {
        command.insert(command.end(), {"-m", "torch.distributed.run", "--standalone",
                                       "--nproc-per-node", std::to_string(ranks)});
      }
      command.insert(command.end(),
                     {script, "--model", request_.subject.model, "--batch", std::to_string(total),
                      "--steps", std::to_string(request_.subject.steps), "--precision",
                      request_.subject.precision, "--devices", std::to_string(devices)});
      command.insert(command.end(), extra.begin(), extra.end());
      add(std::move(row), command, core::environment());
    };
    if (devices == 1) {
      call({.way = "PyTorch eager"}, {"--parallel", "none", "--fused", "--benchmark"}, 1, batch);
      if (on_cards()) {
        const Words fast{"--parallel", "none", "--fused", "--benchmark"};
        const auto with = [&](Words more) {
          more.insert(more.begin(), fast.begin(), fast.end());
          return more;
        };
        call({.way = "PyTorch in a CUDA graph"}, with({"--graph"}), 1, batch);
        call({.way = "torch.compile"}, with({"--compile", "default"}), 1, batch);
        if (request_.max_autotune)
          call({.way = "torch.compile max-autotune"}, with({"--compile", "max-autotune"}), 1,
               batch);
        call({.way = "torch.compile in a CUDA graph"}, with({"--compile", "default", "--graph"}), 1,
             batch);
      }
    } else if (on_cards()) {
      call({.way = "nn.DataParallel"}, {"--parallel", "dp", "--fused", "--benchmark"}, 1,
           static_cast<std::int64_t>(batch) * devices);
    }
    call({.way = "PyTorch DDP"}, {"--parallel", "ddp", "--fused", "--benchmark"}, devices, batch);
  }

  [[nodiscard]] std::string peers_script() const {
    const fs::path script =
        fs::path(self_).parent_path().parent_path() / "share" / "yoke" / "peers" / "step.py";
    if (fs::exists(script)) return script.string();
    throw Error(Code::not_found, text("time rivals: no file ", script.string()),
                "build or install all of Yoke");
  }

  void add(BenchRow row, const Words& command, const core::EnvironmentMap& variables) {
    const Json result = child(command, variables, row.trouble);
    if (row.trouble.empty()) row = measured(std::move(row), result);
    note(std::move(row));
  }

  void note(BenchRow row) {
    core::say(
        core::Level::info,
        text(row.way, row.captured ? ", captured" : "", " x ", row.devices, ", batch ", row.batch,
             ": ",
             row.trouble.empty() ? text(static_cast<long long>(row.images_per_second), " images/s")
                                 : row.trouble));
    table_.add(std::move(row));
  }

  static Json child(const Words& command, const core::EnvironmentMap& variables,
                    std::string& trouble) {
    constexpr std::chrono::minutes kLimit{20};  // max-autotune takes minutes
    const core::ChildResult result =
        core::run_child({.command = command, .variables = variables, .limit = kLimit});
    Json object = last_object(result.out);
    if (!result.succeeded()) {
      trouble = result.timed_out ? "no end after 20 minutes" : last_line(result.err);
      if (trouble.empty()) trouble = text("exit code ", result.exit_code);
    } else if (object.is_discarded()) {
      trouble = "it printed no result";
    }
    return object;
  }

  ParallelRequest request_;
  std::string self_;
  TorchProgram program_;
  Scratch scratch_;
  BenchTable table_;
};

int bench_parallel(const Words& arguments) {
  const OptionWords words =
      read_options({.command = "yoke bench parallel",
                    .values = {"--model", "--batch-sizes", "--precision", "--devices", "--steps",
                               "--data", "--python"},
                    .flags = {"--rivals", "--quick-rivals", "--json", "--markdown", "--help"}},
                   arguments);
  if (words.has("--help")) return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  require_no_rest(words);
  ParallelRequest request{.subject = Subject(words)};
  const int gpus = request.subject.gpus;
  Words batches = words.list("--batch-sizes");
  if (batches.empty()) batches = gpus > 0 ? Words{"32", "256"} : Words{"64"};
  for (const std::string& batch : batches) request.batches.push_back(whole("--batch-sizes", batch));
  request.devices = gpus > 0 ? gpus : 2;
  if (const auto devices = words.value("--devices")) request.devices = whole("--devices", *devices);
  if (gpus > 0 && request.devices > gpus)
    refuse("--devices", std::to_string(request.devices), text("this machine shows ", gpus));
  request.data = words.value("--data").value_or("");
  if (!request.data.empty() && !fs::exists(request.data) && request.data != "synthetic" &&
      request.data != "fashion-mnist")
    refuse("--data", request.data, "give a folder that is there");
  if (!request.data.empty() && (words.has("--rivals") || words.has("--quick-rivals")))
    refuse("--rivals with --data", request.data, "rivals are timed on data that lies ready only");
  request.max_autotune = words.has("--rivals");
  request.rivals = request.max_autotune || words.has("--quick-rivals");
  request.python = words.value("--python").value_or(request.python);
  const BenchTable table = ParallelBench(std::move(request)).run();
  const std::string out = words.has("--json")       ? core::json_text(table.json())
                          : words.has("--markdown") ? table.markdown()
                                                    : table.text();
  if (std::fputs(out.c_str(), stdout) < 0) return 1;
  return std::ranges::all_of(table.rows(), [](const BenchRow& row) { return row.trouble.empty(); })
             ? 0
             : 1;
}

}  // namespace

int bench_command(const Words& words) {
  if (words.empty()) refuse("the command", "", "known: step, parallel");
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "step") return bench_step(rest);
  if (words[0] == "parallel") return bench_parallel(rest);
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help")
    return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  refuse("the command", words[0], core::unknown_name_hint(words[0], {"step", "parallel"}));
}

}  // namespace yoke::cli
