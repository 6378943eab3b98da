#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yoke/stack/pairs.hpp"
#include "yoke/stack/requirement.hpp"
#include "yoke/stack/resolve.hpp"

namespace yoke::stack {

/// What somebody is about to install, and where.
struct InstallPlan {
  std::vector<Requirement> requirements{};
  std::vector<std::string> indexes{};  ///< addresses; none: PyPI
  std::optional<std::string> python{};
  std::optional<Version> pip{};
  std::optional<Version> glibc{};
};

struct Issue {
  std::string id{};  ///< torch-build, torchvision-pair, index, ...; docs/stack.md lists them
  Severity severity = Severity::ok;
  std::string reason{};
  std::string fix{};
};

/// A set that keeps one part of what was asked for.
struct Aligned {
  std::string keeps{};  ///< "torch 2.9", "CUDA 11.8"
  Candidate set{};
};

struct Explanation {
  std::vector<Issue> issues{};  ///< also what looks like a fault and is none (severity ok)
  std::vector<Aligned> aligned{};

  [[nodiscard]] Severity worst() const noexcept;
};

/// Reads words as pip does: requirements, --index-url, --extra-index-url, -i, -f.
/// Errors: invalid_argument quoting what is no requirement.
[[nodiscard]] InstallPlan read_install_words(const std::vector<std::string>& words);

/// Says of each part whether it exists, fits the others and will be found.
/// Borrows the matrix for the result's life.
[[nodiscard]] Explanation explain(const Matrix& matrix, const InstallPlan& plan);

}  // namespace yoke::stack
