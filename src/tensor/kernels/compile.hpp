#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke::kernels {

/// A kernel source and the headers that it includes by name.
struct KernelSource {
  std::string_view name;
  std::string_view text;
  std::vector<std::pair<std::string_view, std::string_view>> headers;  ///< name, text
};

[[nodiscard]] const KernelSource& batch_norm_source();
[[nodiscard]] const KernelSource& max_pool_source();
[[nodiscard]] const KernelSource& stem_fold_source();

/// Whether this process can load NVRTC; asks once.
[[nodiscard]] bool can_compile();

/// Machine code of `source` for compute capability `capability` (90 for sm_90), by NVRTC; no card
/// is needed. `defines` are "NAME=VALUE".
/// Errors: unsupported where NVRTC is not there or does not know the card; internal with the
/// compiler's words.
[[nodiscard]] std::string compile(const KernelSource& source, int capability,
                                  const std::vector<std::string>& defines);

/// compile(), or what an earlier call left in core::cache_folder(). A cache that cannot be written
/// costs the time to compile, nothing else.
[[nodiscard]] std::string compile_cached(const KernelSource& source, int capability,
                                         const std::vector<std::string>& defines);

}  // namespace yoke::kernels
