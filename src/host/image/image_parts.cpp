#include "yoke/image/image_parts.hpp"

#include <algorithm>

#include "image_data.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

bool fits_one(std::string_view package, const ImageParts::Names& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return core::matches_pattern(package, pattern);
  });
}

}  // namespace

const ImageParts& ImageParts::built_in() {
  static const ImageParts parts = parse(kPartsText, "stack/image.json");
  return parts;
}

ImageParts ImageParts::parse(std::string_view text, std::string_view what) try {
  const core::Json json = core::parse_json(text, what);
  ImageParts parts;
  for (const core::Json& base : json.at("bases")) {
    parts.bases.push_back({.system = base.at("system"),
                           .image = base.at("image"),
                           .suite = base.at("suite"),
                           .python = base.at("python"),
                           .glibc = base.at("glibc")});
  }
  json.at("apt").get_to(parts.apt);
  json.at("pip").get_to(parts.pip);
  json.at("toolkit").get_to(parts.toolkit);
  for (const core::Json& layer : json.at("layers"))
    parts.layers.push_back({.name = layer.at("name"), .match = layer.at("match")});
  json.at("order").get_to(parts.order);
  json.at("protected").get_to(parts.guarded);
  json.at("features").get_to(parts.features);
  json.at("more_features").get_to(parts.more);
  json.at("yoke").get_to(parts.yoke);
  parts.torch_index = json.at("torch_index");
  if (parts.layers.empty() || parts.bases.empty() || parts.yoke.empty())
    throw Error(Code::corrupt_data, core::text("read ", what, ": no layers, bases or releases"));
  return parts;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, core::text("read ", what, ": ", error.what()));
}

const std::string& ImageParts::layer_of(std::string_view package) const {
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const Layer& layer) {
    return fits_one(package, layer.match);
  });
  return found == layers.end() ? layers.back().name : found->name;
}

bool ImageParts::is_guarded(std::string_view package) const { return fits_one(package, guarded); }

}  // namespace yoke::image
