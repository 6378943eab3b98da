#include "libraries.hpp"

#include <algorithm>
#include <optional>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::text;
using stack::FoundLibrary;
using stack::Severity;

/// The library of torch that links CUDA's; nothing where it is missing or cannot be read.
std::optional<stack::ElfFile> torch_cuda_library(const Machine& machine) try {
  const stack::TorchCopy* torch = machine.installed().torch();
  if (torch == nullptr) return std::nullopt;
  return stack::ElfFile::open(torch->folder / "lib/libtorch_cuda.so");
} catch (const Error&) {
  return std::nullopt;
}

std::optional<std::string> needed(const stack::ElfFile& file, std::string_view beginning) {
  for (const std::string& name : file.needed()) {
    if (name.starts_with(beginning)) return name;
  }
  return std::nullopt;
}

std::vector<FoundLibrary> candidates(const Machine& machine, const stack::ElfFile& user,
                                     const std::string& soname) {
  return stack::find_library(soname,
                             stack::search_places(user, ld_library_path(machine), machine.root()));
}

/// "2.18.1 (/usr/lib/libnccl.so.2, from LD_LIBRARY_PATH)"
std::string where(const FoundLibrary& found) {
  const auto version = stack::library_version(found.file);
  return text(version ? version->version.text() : "version not read", " (", found.file.string(),
              ", from ", found.from, ")");
}

std::string hidden_text(const std::vector<FoundLibrary>& found) {
  std::vector<std::string> hidden;
  for (std::size_t i = 1; i < found.size(); ++i) hidden.push_back(where(found[i]));
  return hidden.empty() ? "" : "; it hides " + core::joined(hidden);
}

/// Judges the file that wins for a library that torch links.
Finding judge_winner(const Machine& machine, const char* title, const char* part,
                     const std::vector<FoundLibrary>& found) {
  const auto built = stack::built_with(machine.matrix(), machine.installed(), part);
  const auto loaded = stack::library_version(found.front().file);
  const std::string what = where(found.front()) + hidden_text(found);
  if (!built || !loaded) return warn(text("cannot judge ", title, ": ", what));
  const auto judgement = stack::judge_library(title, built->version, loaded->version);
  const std::string reason = text(judgement.reason, ": ", what);
  if (judgement.severity == Severity::ok) return pass(reason);
  const bool own = found.front().from.starts_with("run path");
  return fail(reason, found.size() > 1 && !own ? "take " + found.front().from + " away, so that " +
                                                     found[1].file.string() + " is found"
                                               : judgement.fix);
}

/// cuDNN opens its engines by bare names, by its own run path and not torch's.
std::optional<Finding> foreign_engine(const Machine& machine, const FoundLibrary& main) try {
  const stack::ElfFile file = stack::ElfFile::open(main.file);
  const std::string suffix = main.file.filename().string().substr(std::string("libcudnn").size());
  for (const char* engine : {"libcudnn_ops", "libcudnn_graph", "libcudnn_ops_infer"}) {
    const auto found = candidates(machine, file, engine + suffix);
    if (found.empty()) continue;
    std::error_code failed;
    if (fs::equivalent(found.front().file.parent_path(), main.file.parent_path(), failed)) continue;
    return fail(text("cuDNN ", where(main), " would open the engine ", where(found.front())),
                "take " + found.front().from + " away: it mixes two cuDNNs");
  }
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // not an ELF file: it was judged by its name
}

constexpr const char* kNcclFile = "nvidia/nccl/lib/libnccl.so.2";

bool provides_nccl(const stack::Distribution& distribution) {
  try {
    return stack::records_file(distribution, kNcclFile);
  } catch (const Error&) {
    return true;  // without a RECORD its name tells
  }
}

/// Several packages that each put their NCCL at one place: the last installed won.
std::optional<Finding> doubled_nccl(const Machine& machine) {
  std::vector<const stack::Distribution*> packages;
  for (const stack::Distribution* package : machine.installed().all("nvidia-nccl-cu")) {
    if (provides_nccl(*package)) packages.push_back(package);
  }
  if (packages.size() < 2) return std::nullopt;
  const fs::path file = packages.front()->record.parent_path() / kNcclFile;
  const auto loaded = stack::library_version(file);
  const auto built = stack::built_with(machine.matrix(), machine.installed(), "nccl");
  std::vector<std::string> names;
  std::vector<std::string> others;
  for (const stack::Distribution* package : packages) {
    names.push_back(package->name + " " + package->version);
    const auto version = stack::Version::parse(package->version);
    if (built && version != built->version) others.push_back(package->name);
  }
  const std::string keep = built ? " " + built->version.text() : "";
  return fail(text(core::joined(names, " and "), " both provide ", file.string(),
                   ": needed is NCCL", built ? keep : " of a version not read", ", loaded is ",
                   loaded ? loaded->version.text() : "a version not read"),
              others.empty() ? "pip uninstall all of them, then install torch again"
                             : text("pip uninstall ", core::joined(others, " "),
                                    ", then reinstall the one with NCCL", keep));
}

std::optional<stack::FoundLibrary> system_library(const Machine& machine, const char* soname) {
  auto found =
      stack::find_library(soname, stack::system_places(ld_library_path(machine), machine.root()));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

/// Whether the system's library has the versions that torch needs of it.
Finding judge_system(const Machine& machine, const char* soname, const std::string& prefix,
                     const std::optional<stack::Version>& needed_version) {
  if (machine.installed().torch() == nullptr) return skip("no torch here");
  if (!needed_version)
    return warn("not read: " + core::joined(machine.torch_libraries().unread, "; "));
  const auto found = system_library(machine, soname);
  if (!found) return skip(text("no ", soname, " where the loader looks"));
  const auto highest = stack::highest_defined(stack::ElfFile::open(found->file), prefix);
  if (!highest) return warn(text(found->file.string(), ": has no versions that can be read"));
  const std::string what = text(found->file.string(), " has ", prefix, highest->text(),
                                ", torch needs ", prefix, needed_version->text());
  return *highest >= *needed_version ? pass(what) : fail(what);
}

}  // namespace

Finding check_cudnn(const Machine& machine) {
  const auto torch = torch_cuda_library(machine);
  const auto soname = torch ? needed(*torch, "libcudnn.so") : std::nullopt;
  if (!soname) return skip("no torch that links cuDNN here");
  const auto found = candidates(machine, *torch, *soname);
  if (found.empty()) return fail(text("no ", *soname, " where torch looks"), "reinstall torch");
  if (auto engine = foreign_engine(machine, found.front())) return *engine;
  return judge_winner(machine, "cuDNN", "cudnn", found);
}

Finding check_nccl(const Machine& machine) {
  if (auto doubled = doubled_nccl(machine)) return *doubled;
  const auto torch = torch_cuda_library(machine);
  const auto soname = torch ? needed(*torch, "libnccl.so") : std::nullopt;
  if (!soname) return skip("no torch that links NCCL here");
  const auto found = candidates(machine, *torch, *soname);
  if (found.empty()) return fail(text("no ", *soname, " where torch looks"), "reinstall torch");
  return judge_winner(machine, "NCCL", "nccl", found);
}

Finding check_shadows(const Machine& machine) {
  const std::string variable = ld_library_path(machine);
  if (variable.empty()) return pass("LD_LIBRARY_PATH is not set");
  const auto torch = torch_cuda_library(machine);
  if (!torch) return skip("no torch with CUDA here");
  std::vector<std::string> shadows;
  std::vector<std::string> names = torch->needed();
  names.insert(names.end(), {"libnvJitLink.so.12", "libnvJitLink.so.13"});
  for (const std::string& soname : names) {
    const bool of_cuda =
        soname.starts_with("libcu") || soname.starts_with("libnv") || soname.starts_with("libnccl");
    if (!of_cuda) continue;
    for (const FoundLibrary& found :
         stack::find_library(soname, stack::system_places(variable, machine.root()))) {
      if (found.from == "LD_LIBRARY_PATH") shadows.push_back(found.file.string());
    }
  }
  if (shadows.empty()) return pass("LD_LIBRARY_PATH holds none of torch's libraries");
  return warn("LD_LIBRARY_PATH holds libraries that the wheel brings itself: " +
              core::joined(shadows));
}

Finding check_libstdcxx(const Machine& machine) {
  Finding out =
      judge_system(machine, "libstdc++.so.6", "GLIBCXX_", machine.torch_libraries().glibcxx);
  if (out.status == Status::fail)
    out.fix = "take away the older library from LD_LIBRARY_PATH, or a newer distribution";
  return out;
}

Finding check_glibc(const Machine& machine) {
  Finding out = judge_system(machine, "libc.so.6", "GLIBC_", machine.torch_libraries().glibc);
  if (out.status == Status::fail) out.fix = "a newer distribution, or an image: yoke image run";
  return out;
}

}  // namespace yoke::doctor
