#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "yoke/doctor/check.hpp"

namespace yoke::doctor {

using Labels = std::map<std::string, std::string>;

/// The labels of an image in an OCI layout (a folder or a tar of it) or in docker's archive.
/// Of an image for several platforms: linux/amd64.
/// Errors: not_found, io; corrupt_data for what is no image, with the path and the part.
[[nodiscard]] Labels read_image_labels(const std::filesystem::path& image);

/// The labels in an image's configuration, OCI's JSON. Errors: corrupt_data with `what`.
[[nodiscard]] Labels labels_of_config(const std::string& config, const std::string& what);

/// The verdict of this machine's checks on an image by its stack labels (docs/stack.md).
[[nodiscard]] Report judge_image(const Labels& labels, const Machine& machine);

}  // namespace yoke::doctor
