#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/stack/elf.hpp"
#include "yoke/stack/matrix.hpp"

namespace yoke::stack {

/// For which cards a library has code, from the headers of its fat binaries.
struct CodeArchs {
  std::vector<Arch> archs{};   ///< machine code in nearly all of its fat binaries, ascending
  std::vector<Arch> partly{};  ///< in some only: kernels for one architecture
  bool ptx = false;            ///< nearly all hold PTX too
  std::size_t binaries = 0;    ///< 0: there is no code for cards in it
};

/// Errors: corrupt_data for fat binaries whose sizes lead out of their section.
[[nodiscard]] CodeArchs code_archs(const ElfFile& library);

/// Names of functions that take or return std::string, by ABI.
struct StringAbiNames {
  std::size_t old_names = 0;
  std::size_t new_names = 0;

  /// Nothing where no name tells, or both kinds are there in like numbers.
  [[nodiscard]] std::optional<StringAbi> abi() const noexcept;
};
[[nodiscard]] StringAbiNames string_abi_names(const ElfFile& library);

/// The highest version with this prefix that a library needs ("GLIBC_", "GLIBCXX_") or defines.
[[nodiscard]] std::optional<Version> highest_needed(const ElfFile& library,
                                                    std::string_view prefix);
[[nodiscard]] std::optional<Version> highest_defined(const ElfFile& library,
                                                     std::string_view prefix);

/// A library's own version and by what it was told.
struct LibraryVersion {
  Version version;
  std::string told_by{};
};

/// From the file's real name (libcudnn.so.8.9.2), the text in NCCL's library, or cuDNN's header
/// beside it. Nothing where none of them tells.
[[nodiscard]] std::optional<LibraryVersion> library_version(const std::filesystem::path& library);

/// A place where the loader looks.
struct SearchPlace {
  std::filesystem::path folder{};
  std::string from{};  ///< "run path of libtorch_cuda.so", "LD_LIBRARY_PATH", "/etc/ld.so.conf"
};

/// Where the loader looks for what `library` needs, in its order: DT_RPATH (only without
/// DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH, the system's folders. Paths are below `root`.
[[nodiscard]] std::vector<SearchPlace> search_places(const ElfFile& library,
                                                     std::string_view ld_library_path,
                                                     const std::filesystem::path& root = "/");

/// The folders of LD_LIBRARY_PATH and of the system alone, for a library opened by its bare name.
[[nodiscard]] std::vector<SearchPlace> system_places(std::string_view ld_library_path,
                                                     const std::filesystem::path& root = "/");

struct FoundLibrary {
  std::filesystem::path file{};
  std::string from{};
};

/// The files of that name in the order of `places`: the first wins, the others are hidden by it.
/// Places that lead to one file count once.
[[nodiscard]] std::vector<FoundLibrary> find_library(std::string_view soname,
                                                     const std::vector<SearchPlace>& places);

}  // namespace yoke::stack
