#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/stack/matrix.hpp"

namespace yoke::stack {

/// How a driver serves a CUDA version.
enum class DriverVerdict {
  native,          ///< at least as new as the driver that was released with it
  minor_version,   ///< older, yet of the same CUDA family: everything but new features and PTX
  compat_package,  ///< only with NVIDIA's package cuda-compat, on a card that it serves
  no,
  not_checked,  ///< the matrix does not know this CUDA version
};
[[nodiscard]] std::string_view name(DriverVerdict verdict) noexcept;

struct DriverJudgement {
  DriverVerdict verdict = DriverVerdict::not_checked;
  std::string reason{};             ///< one sentence with both versions
  std::optional<Version> needed{};  ///< the oldest driver with which it would run

  [[nodiscard]] bool runs() const noexcept {
    return verdict == DriverVerdict::native || verdict == DriverVerdict::minor_version;
  }
};

/// A card, as far as verdicts depend on it. Without an architecture no rule for one applies.
struct CardFacts {
  std::optional<Arch> arch{};
  CardClass kind = CardClass::unknown;
};

/// Whether programs of CUDA `cuda` (9.2, 12.8 or 12.8.1) run on this driver and card.
/// A version without patch is the first of its minor version.
[[nodiscard]] DriverJudgement judge_driver(const Matrix& matrix, const Version& driver,
                                           const Version& cuda, const CardFacts& card = {});

/// How a card runs code that was compiled for some architectures.
enum class CodeVerdict { machine_code, ptx, none, not_checked };

/// `ptx`: whether intermediate code of the highest of `archs` is there too.
[[nodiscard]] CodeVerdict judge_code(const Arch& card,
                                     const std::optional<std::vector<Arch>>& archs,
                                     std::optional<bool> ptx);

/// "sm_75 sm_80 sm_90".
[[nodiscard]] std::string arch_list(const std::vector<Arch>& archs);

/// The newest CUDA that the driver was released with or after, as nvidia-smi shows: "12.8". Nothing
/// where the driver is older than the matrix.
[[nodiscard]] std::optional<Version> cuda_of_driver(const Matrix& matrix, const Version& driver);

}  // namespace yoke::stack
