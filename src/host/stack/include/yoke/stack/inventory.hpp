#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/stack/library.hpp"
#include "yoke/stack/matrix.hpp"
#include "yoke/stack/requirement.hpp"

namespace yoke::stack {

/// Which Python a shell would start, and where it looks for modules.
struct PythonPlace {
  std::string version{};                         ///< "3.11"; empty: not known
  std::filesystem::path program{};               ///< empty: none was found
  std::vector<std::filesystem::path> folders{};  ///< as in sys.path: the first wins
};

/// Finds Python from files and variables alone; nothing is started.
///
/// Order of folders: PYTHONPATH, then those of the virtual environment (VIRTUAL_ENV, else the one
///   that the first python3 in PATH belongs to) or of the system with the user's before it.
/// `root`: below which all paths are read.
[[nodiscard]] PythonPlace find_python(const core::EnvironmentMap& variables,
                                      const std::filesystem::path& root = "/");

/// A package as its installer recorded it.
struct Distribution {
  std::string name{};  ///< canonical
  std::string version{};
  std::filesystem::path record{};  ///< its folder NAME-VERSION.dist-info
};

/// The packages of a folder that have to do with torch: torch*, triton, numpy, nvidia-*, cuda-*.
/// Cost: one listing; no file is opened.
[[nodiscard]] std::vector<Distribution> find_distributions(const std::filesystem::path& folder);

/// What a distribution asks for. Errors: those of reading METADATA.
[[nodiscard]] std::vector<Requirement> requirements_of(const Distribution& distribution);

/// Whether its RECORD lists a file that ends with `file`, e.g. "nvidia/nccl/lib/libnccl.so.2".
[[nodiscard]] bool records_file(const Distribution& distribution, std::string_view file);

/// torch as it lies in a folder: what its own files say.
struct TorchCopy {
  std::filesystem::path folder{};    ///< .../torch
  std::optional<Version> version{};  ///< of version.py, with its local part
  Fact cuda{};                       ///< version.py: 13.0; kNone: built without
};

/// What is installed, in one PythonPlace. What could not be read stands in `unread`, in words.
struct Inventory {
  PythonPlace python{};
  std::vector<Distribution> distributions{};  ///< over all folders, in their order
  std::vector<TorchCopy> torches{};           ///< in that order: the first is what gets imported
  std::vector<std::string> unread{};

  [[nodiscard]] const TorchCopy* torch() const { return torches.empty() ? nullptr : &torches[0]; }

  /// The first of that name in the folders' order; null: none.
  [[nodiscard]] const Distribution* find(std::string_view name) const;
  [[nodiscard]] std::vector<const Distribution*> all(std::string_view prefix) const;
};

/// Cost: listings and a few small files; 5 ms for an environment with 200 packages.
[[nodiscard]] Inventory take_inventory(const PythonPlace& python);

/// What the libraries of a torch tell.
struct TorchLibraries {
  std::optional<CodeArchs> code{};  ///< nothing: see `unread`, or built without CUDA
  std::optional<StringAbi> abi{};
  std::optional<Version> glibc{};  ///< the highest that it needs
  std::optional<Version> glibcxx{};
  std::vector<std::string> unread{};
};

/// Cost: a page for each fat binary, some thousand; 20 ms when the file is in memory.
[[nodiscard]] TorchLibraries read_torch_libraries(const TorchCopy& torch);

/// The version that torch was built with, from its pins (nvidia-nccl-cu12==2.27.5), else from the
/// matrix. `part`: "cudnn" or "nccl".
[[nodiscard]] std::optional<LibraryVersion> built_with(const Matrix& matrix,
                                                       const Inventory& inventory,
                                                       std::string_view part);

}  // namespace yoke::stack
