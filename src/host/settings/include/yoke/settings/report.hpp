#pragma once

#include <string>

#include "yoke/settings/resolve.hpp"

namespace yoke::settings {

/// The flags by group, 80 columns wide, ending with a line end.
[[nodiscard]] std::string help_text(const Schema& schema);

/// One line an option: `batch-size = 64  # from recipe base.toml:3`. It is TOML itself; options
/// that are not set, and those that no recipe may hold, stand in comments.
[[nodiscard]] std::string print_config_text(const Settings& settings);

/// The recipe that gives the same values again, whatever the variables and files were.
[[nodiscard]] std::string resolved_toml(const Settings& settings);

}  // namespace yoke::settings
