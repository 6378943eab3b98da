#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/source_text.hpp"
#include "yoke/stack/matrix.hpp"

namespace yoke::image {

enum class Severity { ok, warning, error };
[[nodiscard]] std::string_view name(Severity severity) noexcept;

/// What the linter says about one line. Severity ok: what looks like a fault and is none.
struct Finding {
  std::string id{};  ///< docs/image.md lists them
  int line = 1;
  Severity severity = Severity::error;
  std::string reason{};
  std::string fix{};
  std::vector<Edit> edits{};  ///< what --fix does about it, where that does not depend on a choice
};

enum class FileKind { dockerfile, requirements };

/// By the name (requirements*.txt, constraints*.txt, *.in; Dockerfile*, Containerfile*), else by
/// the first word.
[[nodiscard]] FileKind file_kind(std::string_view name, std::string_view text);

/// Holds a file against the matrix and the faults that docs/image.md lists, by line.
///
///   for (const Finding& finding : lint(text, FileKind::dockerfile, matrix)) ...
///
/// A text that is none (binary bytes) and what docker or pip would refuse are findings too. What
/// depends on something that the file does not tell (a variable, an unknown image) is not judged.
/// Errors: none. Cost: linear in the size.
[[nodiscard]] std::vector<Finding> lint(std::string_view text, FileKind kind,
                                        const stack::Matrix& matrix = stack::Matrix::built_in());

/// Whether a finding is more than an ok.
[[nodiscard]] bool has_faults(const std::vector<Finding>& findings);

/// Which of two that contradict each other a correction keeps.
enum class Keep { torch, cuda };

/// The corrected text: versions that fit, the base they need, and the edits of the findings. What
/// has no mechanical fix stays, so lint() the result.
[[nodiscard]] std::string corrected(std::string_view text, FileKind kind, Keep keep,
                                    const stack::Matrix& matrix = stack::Matrix::built_in());

}  // namespace yoke::image
