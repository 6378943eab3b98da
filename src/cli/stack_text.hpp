#pragma once

#include <string>

#include "yoke/core/json.hpp"
#include "yoke/stack/stack.hpp"

namespace yoke::cli {

// What `yoke stack` prints, for people and as JSON; docs/cmd/stack.md has the fields.

[[nodiscard]] std::string resolution_text(const stack::Resolution& resolution,
                                          const stack::Wishes& wishes);
[[nodiscard]] core::Json resolution_json(const stack::Matrix& matrix,
                                         const stack::Resolution& resolution);

[[nodiscard]] std::string matrix_text(const stack::Matrix& matrix);
[[nodiscard]] core::Json matrix_json(const stack::Matrix& matrix);

[[nodiscard]] std::string release_text(const stack::Release& release);
[[nodiscard]] core::Json release_json(const stack::Release& release);

[[nodiscard]] std::string explanation_text(const stack::Explanation& explanation);
[[nodiscard]] core::Json explanation_json(const stack::Explanation& explanation);

}  // namespace yoke::cli
