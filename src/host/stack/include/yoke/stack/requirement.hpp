#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/stack/version.hpp"

namespace yoke::stack {

/// A package's name in the one spelling of equal names: "nvidia-nccl-cu12".
[[nodiscard]] std::string canonical_name(std::string_view name);

/// What pip is asked for: `torch[opt]>=2.8,<2.10 ; python_version < "3.13"`, or a name at a URL.
struct Requirement {
  std::string name{};  ///< canonical
  std::vector<std::string> extras{};
  Specifiers versions{};
  std::string url{};     ///< of `name @ url`
  std::string marker{};  ///< what stands behind ";", not evaluated

  /// Nothing for a text that is no requirement.
  [[nodiscard]] static std::optional<Requirement> parse(std::string_view text);
};

}  // namespace yoke::stack
