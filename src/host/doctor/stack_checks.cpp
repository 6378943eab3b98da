#include <algorithm>
#include <cctype>
#include <optional>
#include <system_error>

#include "checks.hpp"
#include "libraries.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::text;
using stack::Severity;
using std::chrono::milliseconds;

Finding no_torch() { return skip("no torch here"); }

const stack::TorchCopy* torch_of(const Machine& machine) { return machine.installed().torch(); }

std::optional<stack::Version> torch_version(const Machine& machine) {
  const stack::TorchCopy* torch = torch_of(machine);
  return torch == nullptr ? std::nullopt : torch->version;
}

Finding as_finding(const stack::Judgement& judgement) {
  const Status status = judgement.severity == Severity::error     ? Status::fail
                        : judgement.severity == Severity::warning ? Status::warn
                                                                  : Status::pass;
  return {.status = status, .text = judgement.reason, .fix = judgement.fix};
}

Finding torch(const Machine& machine) {
  const stack::Inventory& installed = machine.installed();
  if (installed.torch() == nullptr) {
    const std::string python =
        installed.python.program.empty()
            ? "no Python found"
            : "no torch in the folders of " + installed.python.program.string();
    return warn(python, "activate the environment that has it, or use an image: yoke image run");
  }
  if (!installed.torch()->version) return warn(core::joined(installed.unread, "; "));
  return pass(text("torch ", installed.torch()->version->text(), " in ",
                   installed.torch()->folder.string()));
}

/// "2.8.0 (/a/torch-2.8.0.dist-info)" for all that call themselves torch.
std::vector<std::string> torch_records(const stack::Inventory& installed) {
  std::vector<std::string> out;
  for (const stack::Distribution& distribution : installed.distributions) {
    if (distribution.name == "torch")
      out.push_back(distribution.version + " (" + distribution.record.string() + ")");
  }
  return out;
}

Finding single(const Machine& machine) {
  const stack::Inventory& installed = machine.installed();
  const stack::TorchCopy* loaded = installed.torch();
  if (loaded == nullptr || !loaded->version) return no_torch();
  std::vector<std::string> seen = torch_records(installed);
  bool differs = false;
  for (const stack::Distribution* record : installed.all("torch")) {
    if (record->name != "torch") continue;
    const auto version = stack::Version::parse(record->version);
    differs = differs || !version || version->without_local() != loaded->version->without_local();
  }
  for (std::size_t i = 1; i < installed.torches.size(); ++i)
    seen.push_back("a copy in " + installed.torches[i].folder.string());
  if (!differs && installed.torches.size() == 1 && seen.size() <= 1) return pass("one torch");
  const std::string what = text("loaded is ", loaded->version->text(), " of ",
                                loaded->folder.string(), "; also here: ", core::joined(seen));
  return differs ? fail(what) : warn(what);
}

Finding python(const Machine& machine) {
  const auto version = torch_version(machine);
  if (!version) return no_torch();
  const std::string& python = machine.installed().python.version;
  if (python.empty()) return skip("Python's version was not read");
  return as_finding(stack::judge_python(machine.matrix(), *version, python));
}

/// The version in PACKAGE/version.py has the local part that its record may lack.
std::optional<stack::Version> package_version(const Machine& machine, const std::string& package) {
  const stack::Distribution* record = machine.installed().find(package);
  if (record == nullptr) return std::nullopt;
  const fs::path file = record->record.parent_path() / package / "version.py";
  if (const auto told = stack::python_version_text(file)) return stack::Version::parse(*told);
  return stack::Version::parse(record->version);
}

Finding partner(const Machine& machine, const char* package) {
  const auto version = torch_version(machine);
  if (!version) return no_torch();
  const auto other = package_version(machine, package);
  if (!other) return skip(text("no ", package, " here"));
  return as_finding(stack::judge_pair(machine.matrix(), *version, package, *other));
}

Finding torchvision(const Machine& machine) { return partner(machine, "torchvision"); }
Finding torchaudio(const Machine& machine) { return partner(machine, "torchaudio"); }

Finding flavour(const Machine& machine) {
  const stack::TorchCopy* torch = torch_of(machine);
  if (torch == nullptr || !torch->version) return no_torch();
  if (!torch->cuda) return skip("version.py does not tell torch's CUDA");
  if (*torch->cuda != stack::kNone) return pass("torch has CUDA " + *torch->cuda);
  if (!machine.driver().any()) return pass("torch without CUDA, and no card");
  return fail(text("torch ", torch->version->text(),
                   " was built without CUDA: torch.cuda.is_available() is False"),
              "pip install the wheel with +cu of the same version; yoke stack resolve names it");
}

/// The visible cards; all where the variable could not be read.
const std::vector<device::Card>& cards_in_use(const Machine& machine) {
  const CardsFacts& cards = machine.cards();
  return cards.visible.cards.empty() ? cards.all : cards.visible.cards;
}

std::optional<stack::Version> torch_cuda(const Machine& machine) {
  const stack::TorchCopy* torch = torch_of(machine);
  if (torch == nullptr || !torch->cuda) return std::nullopt;
  // The matrix knows the toolkit's patch; version.py has major and minor.
  const auto version = torch->version;
  const stack::Release* release = version ? machine.matrix().release(*version) : nullptr;
  const stack::Build* build =
      release == nullptr ? nullptr : stack::find_build(*release, version->local());
  return stack::Version::parse(build != nullptr && build->cuda ? *build->cuda : *torch->cuda);
}

Finding driver(const Machine& machine) {
  const auto cuda = torch_cuda(machine);
  const auto& module = machine.driver().module;
  if (!cuda) return skip("no torch with CUDA here");
  if (!module) return skip("no driver here");
  std::vector<stack::CardFacts> cards;
  for (const device::Card& card : cards_in_use(machine)) cards.push_back(machine.facts_of(card));
  if (cards.empty()) cards.emplace_back();
  stack::DriverJudgement worst{.verdict = stack::DriverVerdict::native};
  for (const stack::CardFacts& card : cards) {
    auto judgement = stack::judge_driver(machine.matrix(), *module, *cuda, card);
    if (judgement.verdict >= worst.verdict) worst = std::move(judgement);
  }
  const std::string what = text(name(worst.verdict), ": ", worst.reason);
  if (worst.runs()) return pass(what);
  if (worst.verdict == stack::DriverVerdict::not_checked) return warn(what);
  if (worst.verdict == stack::DriverVerdict::compat_package && machine.driver().compat)
    return pass(what + "; it is here");
  const std::string driver =
      worst.needed ? "a driver from " + worst.needed->text() : "a newer driver";
  return fail(
      what, driver + ", or torch for an older CUDA: yoke stack resolve --driver " + module->text());
}

Finding code(const Machine& machine) {
  const stack::TorchCopy* torch = torch_of(machine);
  if (torch == nullptr || torch->cuda == stack::kNone) return skip("no torch with CUDA here");
  const auto& code = machine.torch_libraries().code;
  if (!code) return warn("not read: " + core::joined(machine.torch_libraries().unread, "; "));
  const std::string has = stack::arch_list(code->archs) + (code->ptx ? " + PTX" : "");
  std::vector<std::string> missing;
  for (const device::Card& card : cards_in_use(machine)) {
    const auto arch = machine.facts_of(card).arch;
    if (!arch) return warn(text(card.name, ": its architecture is not known; torch has ", has));
    if (stack::judge_code(*arch, code->archs, code->ptx) == stack::CodeVerdict::none)
      missing.push_back(card.name + " (" + arch->sm() + ")");
  }
  if (missing.empty()) return pass("torch has code for " + has);
  return fail(text("no kernel image for ", core::joined(missing), ": torch has ", has),
              "a wheel for another CUDA: yoke stack resolve --gpu names it");
}

Finding numpy(const Machine& machine) {
  const auto version = torch_version(machine);
  if (!version) return no_torch();
  const stack::Distribution* record = machine.installed().find("numpy");
  if (record == nullptr) return skip("no NumPy here");
  const auto numpy = stack::Version::parse(record->version);
  if (!numpy) return skip("NumPy's version was not read");
  return as_finding(stack::judge_numpy(machine.matrix(), *version, *numpy));
}

std::optional<stack::Version> version_in_json(const Machine& machine, const fs::path& file) try {
  const auto bytes = machine.text_of(file);
  if (!bytes) return std::nullopt;
  const core::Json json = core::parse_json(*bytes, file.string());
  return stack::Version::parse(json.at("cuda").at("version").get<std::string>());
} catch (const std::exception&) {
  return std::nullopt;  // of another form
}

/// The toolkit of the first nvcc in PATH, by the files beside it.
std::optional<stack::Version> toolkit_version(const Machine& machine) {
  for (const std::string& folder : core::split(core::value_or(machine.variables(), "PATH"), ':')) {
    std::error_code failed;
    const fs::path program = machine.at(folder) / "nvcc";
    if (folder.empty() || !fs::exists(program, failed)) continue;
    const fs::path prefix = fs::canonical(program, failed).parent_path().parent_path();
    const fs::path shown = "/" / prefix.lexically_relative(fs::canonical(machine.root(), failed));
    if (auto version = version_in_json(machine, shown / "version.json")) return version;
    const std::string name = prefix.filename().string();
    constexpr std::string_view kPrefix = "cuda-";
    if (name.starts_with(kPrefix)) return stack::Version::parse(name.substr(kPrefix.size()));
  }
  return std::nullopt;
}

Finding compiler(const Machine& machine) {
  stack::CudaNumbers numbers{.nvcc = toolkit_version(machine)};
  if (const stack::TorchCopy* torch = torch_of(machine); torch != nullptr && torch->cuda)
    numbers.torch = stack::Version::parse(*torch->cuda);
  if (const auto& module = machine.driver().module)
    numbers.driver = stack::cuda_of_driver(machine.matrix(), *module);
  if (!numbers.torch) return skip("no torch with CUDA here");
  if (!numbers.nvcc) return skip("no nvcc in PATH; needed only for compiling extensions");
  return as_finding(stack::judge_cuda_compiler(numbers));
}

Finding string_abi(const Machine& machine) {
  const auto version = torch_version(machine);
  if (!version) return no_torch();
  const auto abi = machine.torch_libraries().abi;
  if (!abi) return warn("not read: " + core::joined(machine.torch_libraries().unread, "; "));
  return pass(text("torch has the ", name(*abi),
                   " string ABI; C++ programs that link it need -D_GLIBCXX_USE_CXX11_ABI=",
                   *abi == stack::StringAbi::new_abi ? 1 : 0));
}

}  // namespace

std::vector<Check> stack_checks() {
  return {
      {"stack.torch", "torch", Weight::hurts, milliseconds(300), torch, ""},
      {"stack.single", "one torch", Weight::blocks, milliseconds(300), single,
       "make a clean environment and install torch once"},
      {"stack.python", "Python", Weight::blocks, milliseconds(300), python, ""},
      {"stack.torchvision", "torchvision", Weight::hurts, milliseconds(300), torchvision, ""},
      {"stack.torchaudio", "torchaudio", Weight::hurts, milliseconds(300), torchaudio, ""},
      {"stack.flavour", "CUDA build", Weight::hurts, milliseconds(300), flavour, ""},
      {"stack.driver", "driver for torch", Weight::blocks, milliseconds(500), driver, ""},
      {"stack.code", "code for the cards", Weight::blocks, milliseconds(800), code, ""},
      {"stack.cudnn", "cuDNN", Weight::blocks, milliseconds(500), check_cudnn, ""},
      {"stack.nccl", "NCCL", Weight::blocks, milliseconds(500), check_nccl, ""},
      {"stack.shadow", "LD_LIBRARY_PATH", Weight::hurts, milliseconds(500), check_shadows,
       "unset LD_LIBRARY_PATH, or put the wheel's folders first"},
      {"stack.numpy", "NumPy", Weight::hurts, milliseconds(300), numpy, ""},
      {"stack.libstdcxx", "C++ library", Weight::blocks, milliseconds(500), check_libstdcxx, ""},
      {"stack.glibc", "C library", Weight::blocks, milliseconds(500), check_glibc, ""},
      {"stack.nvcc", "CUDA compiler", Weight::hurts, milliseconds(300), compiler, ""},
      {"stack.abi", "string ABI", Weight::hurts, milliseconds(500), string_abi, ""},
  };
}

}  // namespace yoke::doctor
