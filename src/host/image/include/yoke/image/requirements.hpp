#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/source_text.hpp"

namespace yoke::image {

/// One requirement as pip writes it: name[extras] conditions ; marker, or name @ url.
struct Requirement {
  std::string name{};        ///< lower case, runs of - _ . as one -
  std::string conditions{};  ///< "==2.9.0+cu118"; empty: any version
  std::string marker{};      ///< after ';'
  std::string url{};         ///< after '@'
  std::string extras{};      ///< "[cuda]" as written
  std::string written{};     ///< name, extras and conditions as written
  Span where{};
  bool has_hash = false;

  /// The version that a single == names; nothing for a range or ==2.*.
  [[nodiscard]] std::optional<std::string> exact() const;
};

/// Reads one requirement. Nothing for a text that is none (a path, an option).
[[nodiscard]] std::optional<Requirement> parse_requirement(std::string_view text, Span where);

struct RequirementOption {
  std::string name{};  ///< the long name without dashes: "index-url"
  std::string value{};
  Span where{};
};

struct RequirementsFile {
  std::vector<Requirement> requirements{};
  std::vector<RequirementOption> options{};
  std::vector<SyntaxFault> faults{};  ///< what pip would refuse
};

/// Reads a requirements or constraints file as pip does. What pip would refuse becomes a fault, and
/// reading goes on.
///
/// Errors: as check_text. Cost: linear in the size.
[[nodiscard]] RequirementsFile parse_requirements(std::string_view text, std::string_view name);

}  // namespace yoke::image
