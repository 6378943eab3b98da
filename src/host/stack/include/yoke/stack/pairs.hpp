#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "yoke/stack/matrix.hpp"

namespace yoke::stack {

enum class Severity { ok, note, warning, error };
[[nodiscard]] std::string_view name(Severity severity) noexcept;

/// What is to be said of versions that stand beside each other.
struct Judgement {
  Severity severity = Severity::ok;
  bool judged = true;  ///< false: the matrix does not know one of them, so nobody may say "ok"
  std::string reason{};
  std::string fix{};  ///< the version that would fit
};

/// torchvision or torchaudio (`package`) beside torch, by their versions and CUDA builds.
///
/// Another CUDA major, or a build without CUDA beside one with it, is an error; another minor of
/// one major a warning; a missing local part says nothing.
[[nodiscard]] Judgement judge_pair(const Matrix& matrix, const Version& torch,
                                   std::string_view package, const Version& version);

/// NumPy beside torch: wheels before 2.3 were built against NumPy 1.
[[nodiscard]] Judgement judge_numpy(const Matrix& matrix, const Version& torch,
                                    const Version& numpy);

/// Whether there is a wheel of that torch for this Python ("3.12", "3.13t").
[[nodiscard]] Judgement judge_python(const Matrix& matrix, const Version& torch,
                                     std::string_view python);

/// The library that is loaded in place of the one torch was built with: another major, or an older
/// one, is an error. `what`: "cuDNN", "NCCL".
[[nodiscard]] Judgement judge_library(std::string_view what, const Version& built,
                                      const Version& loaded);

/// Three numbers that people compare: the CUDA of nvcc, of torch and of the driver's table. Each
/// may be absent.
struct CudaNumbers {
  std::optional<Version> nvcc{};
  std::optional<Version> torch{};
  std::optional<Version> driver{};
};

/// Whether programs run (driver against torch).
[[nodiscard]] Judgement judge_cuda_runtime(const CudaNumbers& cuda);

/// Whether extensions of torch can be compiled (nvcc against torch).
[[nodiscard]] Judgement judge_cuda_compiler(const CudaNumbers& cuda);

}  // namespace yoke::stack
