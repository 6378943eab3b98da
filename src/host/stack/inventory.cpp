#include "yoke/stack/inventory.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

namespace fs = std::filesystem;
using core::text;

bool has_to_do_with_torch(const std::string& name) {
  constexpr std::array<std::string_view, 4> kNames{"triton", "numpy", "pytorch-triton", "pip"};
  return name.starts_with("torch") || name.starts_with("nvidia-") || name.starts_with("cuda-") ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// name and version of NAME-VERSION.dist-info; nothing for another folder.
std::optional<Distribution> read_name(const fs::path& folder) {
  constexpr std::string_view kSuffix = ".dist-info";
  std::string name = folder.filename().string();
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.resize(name.size() - kSuffix.size());
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  return Distribution{.name = canonical_name(name.substr(0, dash)),
                      .version = name.substr(dash + 1),
                      .record = folder};
}

/// The text between quotes behind `name` and "=" in a line of Python; nothing for None.
Fact assigned(const std::string& source, std::string_view name) {
  for (const std::string& line : core::split(source, '\n')) {
    if (!line.starts_with(name)) continue;
    const char after = line.size() > name.size() ? line[name.size()] : '\0';
    if (after != ' ' && after != ':' && after != '=') continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view value = core::trimmed(std::string_view(line).substr(equals + 1));
    if (value == "None") return std::string(kNone);
    if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"'))
      return std::string(value.substr(1, value.find(value.front(), 1) - 1));
  }
  return std::nullopt;
}

void read_torch(const fs::path& folder, Inventory& inventory) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) return;
  TorchCopy copy{.folder = folder};
  const fs::path file = folder / "version.py";
  try {
    const std::string source = core::read_file(file);
    copy.version = Version::parse(assigned(source, "__version__").value_or(""));
    copy.cuda = assigned(source, "cuda");
    if (!copy.version)
      inventory.unread.push_back(text(file.string(), ": no version in it that can be read"));
  } catch (const Error& error) {
    inventory.unread.push_back(error.message());
  }
  inventory.torches.push_back(std::move(copy));
}

/// The version with which exactly `name` is pinned among requirements, whatever CUDA follows it.
std::optional<Version> pinned(const std::vector<Requirement>& requirements, std::string_view name) {
  for (const Requirement& requirement : requirements) {
    const bool same = requirement.name == name || requirement.name.starts_with(text(name, "-cu"));
    if (!same) continue;
    if (auto version = requirement.versions.exact()) return version;
  }
  return std::nullopt;
}

/// Reads one library and keeps what was wrong with it as words.
template <class Read>
void look_into(const fs::path& file, TorchLibraries& out, const Read& read) try {
  read(ElfFile::open(file));
} catch (const Error& error) {
  out.unread.push_back(error.message());
}

std::optional<Version> higher(const std::optional<Version>& a, const std::optional<Version>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

}  // namespace

std::vector<Distribution> find_distributions(const fs::path& folder) {
  std::vector<Distribution> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    auto distribution = read_name(entry.path());
    if (distribution && has_to_do_with_torch(distribution->name))
      out.push_back(std::move(*distribution));
  }
  std::sort(out.begin(), out.end(), [](const Distribution& a, const Distribution& b) {
    return std::pair(a.name, a.version) < std::pair(b.name, b.version);
  });
  return out;
}

std::vector<Requirement> requirements_of(const Distribution& distribution) {
  std::vector<Requirement> out;
  for (const std::string& line :
       core::split(core::read_file(distribution.record / "METADATA"), '\n')) {
    if (core::trimmed(line).empty()) break;  // what follows is the description
    constexpr std::string_view kKey = "Requires-Dist:";
    if (!line.starts_with(kKey)) continue;
    if (auto one = Requirement::parse(std::string_view(line).substr(kKey.size())))
      out.push_back(std::move(*one));
  }
  return out;
}

bool records_file(const Distribution& distribution, std::string_view file) {
  const std::string record = core::read_file(distribution.record / "RECORD");
  return record.starts_with(text(file, ",")) ||
         record.find(text("\n", file, ",")) != std::string::npos;
}

const Distribution* Inventory::find(std::string_view name) const {
  const auto found =
      std::find_if(distributions.begin(), distributions.end(),
                   [&](const Distribution& distribution) { return distribution.name == name; });
  return found == distributions.end() ? nullptr : &*found;
}

std::vector<const Distribution*> Inventory::all(std::string_view prefix) const {
  std::vector<const Distribution*> out;
  for (const Distribution& distribution : distributions) {
    if (distribution.name.starts_with(prefix)) out.push_back(&distribution);
  }
  return out;
}

Inventory take_inventory(const PythonPlace& python) {
  Inventory out{.python = python};
  for (const fs::path& folder : python.folders) {
    for (Distribution& distribution : find_distributions(folder))
      out.distributions.push_back(std::move(distribution));
    read_torch(folder / "torch", out);
  }
  return out;
}

TorchLibraries read_torch_libraries(const TorchCopy& torch) {
  TorchLibraries out;
  const fs::path folder = torch.folder / "lib";
  look_into(folder / "libc10.so", out, [&](const ElfFile& file) {
    out.abi = string_abi_names(file).abi();
    if (!out.abi) out.unread.push_back(file.name() + ": its names do not tell the string ABI");
  });
  for (const char* name : {"libc10.so", "libtorch_cpu.so"}) {
    look_into(folder / name, out, [&](const ElfFile& file) {
      out.glibc = higher(out.glibc, highest_needed(file, "GLIBC_"));
      out.glibcxx = higher(out.glibcxx, highest_needed(file, "GLIBCXX_"));
    });
  }
  if (torch.cuda == kNone) return out;
  look_into(folder / "libtorch_cuda.so", out,
            [&](const ElfFile& file) { out.code = code_archs(file); });
  return out;
}

std::optional<LibraryVersion> built_with(const Matrix& matrix, const Inventory& inventory,
                                         std::string_view part) {
  const Distribution* torch = inventory.find("torch");
  if (torch != nullptr) {
    try {
      if (auto version = pinned(requirements_of(*torch), text("nvidia-", part)))
        return LibraryVersion{.version = *version, .told_by = "torch's pins"};
    } catch (const Error&) {
      // Without METADATA the matrix may know.
    }
  }
  if (inventory.torch() == nullptr || !inventory.torch()->version) return std::nullopt;
  const Version& version = *inventory.torch()->version;
  const Release* release = matrix.release(version);
  const Build* build = release == nullptr ? nullptr : find_build(*release, version.local());
  if (build == nullptr) return std::nullopt;
  const auto known = Version::parse((part == "cudnn" ? build->cudnn : build->nccl).value_or(""));
  if (!known) return std::nullopt;
  return LibraryVersion{.version = *known, .told_by = "the matrix"};
}

}  // namespace yoke::stack
