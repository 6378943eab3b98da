#pragma once

#include <filesystem>
#include <string>

#include "yoke/image/sandbox.hpp"

namespace yoke::image {

/// An image as a folder that can become "/".
struct OpenedImage {
  std::string root{};
  ImageSettings settings{};
};

/// Opens a root folder as it is, or unpacks an OCI layout (oci-layout, index.json, blobs) once into
/// Yoke's cache, under its manifest's digest.
///
/// A layer is unpacked by tar in a sandbox that may write into the new folder alone, so that links
/// in it lead nowhere. Whiteouts of a layer hide what is below it.
/// Errors: not_found, io; corrupt_data naming the file for a layout that is none; unsupported
///   without tar or bubblewrap.
[[nodiscard]] OpenedImage open_image(const std::filesystem::path& path);

/// The settings in an image's config file. Errors: corrupt_data with `what`.
[[nodiscard]] ImageSettings read_image_config(std::string_view text, std::string_view what);

}  // namespace yoke::image
