#include "yoke/stack/library.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr std::size_t kLongestName = 1024;  // a demangler calls itself for each level of a name

bool takes_old_string(std::string_view symbol) {
  if (symbol.find("Ss") == std::string_view::npos || symbol.size() > kLongestName) return false;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return false;
  const std::string_view words = plain.get();
  return words.find("std::string") != std::string_view::npos ||
         words.find("std::basic_string<char,") != std::string_view::npos;
}

/// Names of the C++ library itself, which has both ABIs.
bool is_of_library(std::string_view symbol) {
  constexpr std::array<std::string_view, 8> kBeginnings{
      "_ZNSt", "_ZNKSt", "_ZSt", "_ZNSs", "_ZNKSs", "_ZGTt", "_ZT", "_ZN9__gnu_cxx"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return symbol.starts_with(beginning); });
}

std::optional<Version> highest(const std::vector<std::string>& names, std::string_view prefix) {
  std::optional<Version> out;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    const auto version = Version::parse(std::string_view(name).substr(prefix.size()));
    if (version && (!out || *version > *out)) out = version;
  }
  return out;
}

std::optional<LibraryVersion> version_in_name(const fs::path& library) {
  std::error_code failed;
  const fs::path real = fs::canonical(library, failed);
  const std::string name = (failed ? library : real).filename().string();
  const std::size_t at = name.find(".so.");
  if (at == std::string::npos) return std::nullopt;
  auto version = Version::parse(std::string_view(name).substr(at + 4));
  if (!version || version->release().size() < 3) return std::nullopt;
  return LibraryVersion{.version = *version, .told_by = "its name " + name};
}

/// NCCL writes "NCCL version 2.27.5+cuda12.9" into its log, so the text is in its data.
std::optional<LibraryVersion> version_in_nccl(const fs::path& library) try {
  const ElfFile file = ElfFile::open(library);
  const auto data = file.section(".rodata");
  if (!data) return std::nullopt;
  const std::string_view bytes(reinterpret_cast<const char*>(data->data()), data->size());
  constexpr std::string_view kMark = "NCCL version ";
  for (std::size_t at = bytes.find(kMark); at != std::string_view::npos;
       at = bytes.find(kMark, at + 1)) {
    const std::string_view rest = bytes.substr(at + kMark.size(), 64);
    const auto version = Version::parse(rest.substr(0, rest.find_first_not_of("0123456789.")));
    if (version && version->release().size() >= 3)
      return LibraryVersion{.version = *version, .told_by = "a text in it"};
  }
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // unreadable: it does not tell
}

std::optional<std::int64_t> defined_number(const std::string& header, const std::string& name) {
  const std::string mark = "#define " + name + " ";
  const std::size_t at = header.find(mark);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + mark.size();
  return core::parse_integer(
      core::trimmed(std::string_view(header).substr(begin, header.find('\n', begin) - begin)));
}

std::optional<LibraryVersion> version_in_header(const fs::path& library) try {
  const fs::path header = library.parent_path().parent_path() / "include/cudnn_version.h";
  const std::string bytes = core::read_file(header);
  const auto major = defined_number(bytes, "CUDNN_MAJOR");
  const auto minor = defined_number(bytes, "CUDNN_MINOR");
  const auto patch = defined_number(bytes, "CUDNN_PATCHLEVEL");
  if (!major || !minor || !patch) return std::nullopt;
  return LibraryVersion{.version = *Version::parse(text(*major, ".", *minor, ".", *patch)),
                        .told_by = header.string()};
} catch (const Error&) {
  return std::nullopt;  // no header beside it
}

fs::path below(const fs::path& root, const fs::path& path) { return root / path.relative_path(); }

std::vector<std::string> lines_of(const fs::path& file) try {
  return core::split(core::read_file(file), '\n');
} catch (const Error&) {
  return {};
}

/// The folders that ld.so.conf and the files beside it name.
void add_configured(const fs::path& root, std::vector<SearchPlace>& out) {
  std::vector<fs::path> files{root / "etc/ld.so.conf"};
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root / "etc/ld.so.conf.d", failed)) {
    if (entry.path().extension() == ".conf") files.push_back(entry.path());
  }
  std::sort(files.begin() + 1, files.end());
  for (const fs::path& file : files) {
    for (const std::string& line : lines_of(file)) {
      const std::string_view folder = core::trimmed(line);
      if (folder.starts_with("/"))
        out.push_back(
            {.folder = below(root, folder), .from = "/" + file.lexically_relative(root).string()});
    }
  }
}

void add_run_path(const ElfFile& library, const std::vector<std::string>& folders,
                  const fs::path& root, std::vector<SearchPlace>& out) {
  const fs::path own = fs::path(library.name()).parent_path();
  for (std::string folder : folders) {
    fs::path place = below(root, folder);
    for (const std::string_view origin : {"$ORIGIN", "${ORIGIN}"}) {
      if (folder.starts_with(origin))
        place = own / fs::path(folder.substr(origin.size())).relative_path();
    }
    out.push_back({.folder = place.lexically_normal(),
                   .from = "run path of " + fs::path(library.name()).filename().string()});
  }
}

void add_variable(std::string_view ld_library_path, const fs::path& root,
                  std::vector<SearchPlace>& out) {
  for (const std::string& folder : core::split(ld_library_path, ':')) {
    if (!folder.empty()) out.push_back({.folder = below(root, folder), .from = "LD_LIBRARY_PATH"});
  }
}

void add_system(const fs::path& root, std::vector<SearchPlace>& out) {
  add_configured(root, out);
  for (const char* folder : {"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64",
                             "usr/lib64", "lib", "usr/lib"}) {
    out.push_back({.folder = root / folder, .from = "the system's folders"});
  }
}

}  // namespace

std::optional<StringAbi> StringAbiNames::abi() const noexcept {
  constexpr std::size_t kClear = 10;  // times as many
  if (new_names > old_names * kClear) return StringAbi::new_abi;
  if (old_names > new_names * kClear) return StringAbi::old_abi;
  return std::nullopt;
}

StringAbiNames string_abi_names(const ElfFile& library) {
  StringAbiNames out;
  library.symbols([&](std::string_view symbol, bool) {
    if (!symbol.starts_with("_Z") || is_of_library(symbol)) return true;
    if (symbol.find("St7__cxx1112basic_string") != std::string_view::npos) {
      ++out.new_names;
    } else if (takes_old_string(symbol)) {
      ++out.old_names;
    }
    return true;
  });
  return out;
}

std::optional<Version> highest_needed(const ElfFile& library, std::string_view prefix) {
  std::vector<std::string> names;
  for (NeededVersion& needed : library.needed_versions())
    names.push_back(std::move(needed.version));
  return highest(names, prefix);
}

std::optional<Version> highest_defined(const ElfFile& library, std::string_view prefix) {
  return highest(library.defined_versions(), prefix);
}

std::optional<LibraryVersion> library_version(const fs::path& library) {
  if (auto version = version_in_name(library)) return version;
  const std::string name = library.filename().string();
  if (name.starts_with("libnccl.")) return version_in_nccl(library);
  if (name.starts_with("libcudnn")) return version_in_header(library);
  return std::nullopt;
}

std::vector<SearchPlace> search_places(const ElfFile& library, std::string_view ld_library_path,
                                       const fs::path& root) {
  std::vector<SearchPlace> out;
  if (library.runpath().empty()) add_run_path(library, library.rpath(), root, out);
  add_variable(ld_library_path, root, out);
  add_run_path(library, library.runpath(), root, out);
  add_system(root, out);
  return out;
}

std::vector<SearchPlace> system_places(std::string_view ld_library_path, const fs::path& root) {
  std::vector<SearchPlace> out;
  add_variable(ld_library_path, root, out);
  add_system(root, out);
  return out;
}

std::vector<FoundLibrary> find_library(std::string_view soname,
                                       const std::vector<SearchPlace>& places) {
  std::vector<FoundLibrary> out;
  std::vector<fs::path> seen;
  for (const SearchPlace& place : places) {
    const fs::path file = place.folder / soname;
    std::error_code failed;
    const fs::path real = fs::canonical(file, failed);
    if (failed || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    out.push_back({.file = file, .from = place.from});
  }
  return out;
}

}  // namespace yoke::stack
