#pragma once

#include <string>
#include <vector>

#include "yoke/core/json.hpp"
#include "yoke/doctor/doctor.hpp"

namespace yoke::cli {

// What `yoke doctor` prints, for people and as JSON; docs/cmd/doctor.md has the fields.

[[nodiscard]] std::string report_text(const doctor::Report& report);
[[nodiscard]] core::Json report_json(const doctor::Report& report);

[[nodiscard]] std::string meanings_text(const std::vector<doctor::Meaning>& meanings);
[[nodiscard]] core::Json meanings_json(const std::vector<doctor::Meaning>& meanings);

[[nodiscard]] std::string process_text(const doctor::ProcessLibraries& process);
[[nodiscard]] core::Json process_json(const doctor::ProcessLibraries& process);

}  // namespace yoke::cli
