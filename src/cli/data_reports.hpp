#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "yoke/core/json.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/pack.hpp"
#include "yoke/feed/survey.hpp"

namespace yoke::cli {

/// What yoke data found, as values with names. Text is made of the same values.
[[nodiscard]] core::Json survey_json(const feed::EncodedImages& images, const feed::Survey& survey);
[[nodiscard]] core::Json pack_json(const feed::PackReport& report);

/// An IDX file, a folder of MNIST's files or a token file; nothing for anything else.
/// Errors: those of opening them.
[[nodiscard]] std::optional<core::Json> other_data_json(const std::filesystem::path& path);

/// "name  value" lines; lists of objects as indented lines.
[[nodiscard]] std::string report_text(const core::Json& report);

}  // namespace yoke::cli
