#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/stack/version.hpp"

namespace yoke::stack {

/// A value of the matrix. Nothing: not checked, so nobody may conclude anything from it. kNone:
/// checked, and there is none.
using Fact = std::optional<std::string>;
inline constexpr std::string_view kNone = "none";

/// "not checked", "none", or the value.
[[nodiscard]] std::string shown(const Fact& fact);

/// What torch's C++ names look like: std::string before (old) or since (new) GCC 5.
enum class StringAbi { old_abi, new_abi };
[[nodiscard]] std::string_view name(StringAbi abi) noexcept;

/// A compute capability: 9.0 of an H200, 12.0 of an RTX 5090.
struct Arch {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Arch&) const = default;

  /// Reads 12.0, sm_120, sm_90a, compute_120 or 120.
  [[nodiscard]] static std::optional<Arch> parse(std::string_view text);
  [[nodiscard]] std::string dotted() const;  ///< "12.0"
  [[nodiscard]] std::string sm() const;      ///< "sm_120"
};

/// One build of a release: the wheel for one CUDA version.
struct Build {
  std::string wheel{};  ///< cpu, cu126: the local part of torch's version
  Fact cuda{};          ///< toolkit with patch, e.g. 12.8.1
  Fact tier{};          ///< stable, experimental, extra (on the index, not in PyTorch's table)
  std::optional<bool> is_default{};  ///< what `pip install torch` gives
  Fact cudnn{};
  Fact nccl{};
  std::optional<std::vector<Arch>> archs{};  ///< with machine code
  std::optional<bool> ptx{};
  std::optional<StringAbi> abi{};
  Fact glibc{};  ///< the oldest that it runs on
  std::vector<std::string> sources{};
  std::vector<std::string>
      read{};  ///< values that were read from a wheel: "ptx: torch 2.6.0+cu124: ..."
  std::string note{};

  [[nodiscard]] bool is_cpu() const noexcept { return wheel == "cpu"; }
  [[nodiscard]] std::string cuda_series() const;  ///< "12.8", from the wheel's name; empty for cpu
};

/// A version of torch and what was released with it.
struct Patch {
  Version torch;
  Fact torchvision{};
  Fact torchaudio{};
  Fact triton{};
};

struct PythonRange {
  Version first;
  Version last;
  std::vector<std::string> trial{};  ///< experimental
};

/// A minor version of torch: 2.9.
struct Release {
  Version torch;
  std::string month{};
  std::optional<PythonRange> python{};
  std::optional<int> cxx{};
  Fact torchvision{};
  Fact torchaudio{};
  std::optional<std::vector<Patch>> patches{};
  std::vector<Build> builds{};
  std::vector<std::string> sources{};
  std::string note{};
};

struct Toolkit {
  Version cuda;
  std::optional<Version> driver{};  ///< the one that was released with it
};

/// Which cards the package cuda-compat serves: all, none, some that NVIDIA lists.
enum class CardClass { unknown, data_centre, workstation, consumer, jetson };
[[nodiscard]] std::string_view name(CardClass kind) noexcept;

struct CardKind {
  std::string name{};  ///< part of what nvidia-smi prints
  Arch arch{};
  CardClass kind = CardClass::unknown;
};

/// An architecture that needs a newer CUDA and driver than the rule of minor versions says.
struct ArchLimit {
  Arch from{};
  Version cuda;
  Version driver;
};

/// Which versions of torch, CUDA, driver, Python and the rest fit each other.
///
///   const Matrix& matrix = Matrix::built_in();
///   for (const Build& build : matrix.release("2.9")->builds) ...
///
/// docs/stack.md has the format. Errors: read(): not_found, io, corrupt_data naming the file and
/// the
///   entry; built_in() cannot fail.
struct Matrix {
  std::string version{};            ///< the day of its state
  std::vector<Release> releases{};  ///< oldest first
  std::vector<Toolkit> toolkits{};  ///< oldest first
  std::vector<Toolkit> families{};  ///< major CUDA version and the oldest driver of all its minors
  std::vector<CardKind> cards{};
  std::vector<ArchLimit> limits{};
  Version numpy_two;      ///< first torch whose wheels take NumPy 2
  Version old_cudnn_end;  ///< first cuDNN that needs arch `cudnn_arch`
  Arch cudnn_arch{};
  Version manylinux_pip;  ///< first pip that sees today's wheels

  /// The one compiled into this program. Cost: parsed at the first call, about 1 ms.
  [[nodiscard]] static const Matrix& built_in();
  [[nodiscard]] static Matrix read(const std::filesystem::path& file);
  [[nodiscard]] static Matrix parse(std::string_view text, std::string_view what);

  /// The release to which a version belongs; null: none here.
  [[nodiscard]] const Release* release(const Version& torch) const;

  /// The patch entry of exactly that version; null: none here.
  [[nodiscard]] const Patch* patch(const Version& torch) const;

  /// The release whose torchvision is of this minor version; null: none here.
  [[nodiscard]] const Release* release_of_torchvision(const Version& torchvision) const;

  /// The kind of a card by its name, e.g. "NVIDIA H100 80GB HBM3"; null: not known.
  [[nodiscard]] const CardKind* card(std::string_view name) const;
};

/// The build of a release by its wheel name; null: there is none.
[[nodiscard]] const Build* find_build(const Release& release, std::string_view wheel);

}  // namespace yoke::stack
