#include "yoke/models/registry.hpp"

#include <algorithm>
#include <array>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/models/mlp.hpp"
#include "yoke/models/resnet.hpp"
#include "yoke/models/small_cnn.hpp"

namespace yoke::models {
namespace {

using Made = std::shared_ptr<ImageClassifier>;

struct Maker {
  std::string_view name;
  Made (*make)(const InputOptions& input);
};

template <ResNet (*build)(std::int64_t, std::int64_t)>
Made made(const InputOptions& input) {
  return build(input.num_classes, input.in_channels).ptr();
}

constexpr std::array<Maker, 6> kMakers{{
    {"mlp",
     [](const InputOptions& input) -> Made {
       const std::int64_t values = input.in_channels * input.image_size * input.image_size;
       return mlp({values, 2048, 2048, input.num_classes}).ptr();
     }},
    {"small-cnn",
     [](const InputOptions& input) -> Made {
       return small_cnn({.num_classes = input.num_classes, .in_channels = input.in_channels}).ptr();
     }},
    {"resnet18", made<resnet18>},
    {"resnet34", made<resnet34>},
    {"resnet50", made<resnet50>},
    {"resnet101", made<resnet101>},
}};

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Maker& maker : kMakers) all.emplace_back(maker.name);
  return all;
}

std::shared_ptr<ImageClassifier> make(std::string_view name, const InputOptions& input) {
  const auto found = std::ranges::find(kMakers, name, &Maker::name);
  if (found == kMakers.end()) {
    throw Error(Code::not_found, core::text("build a model: no model is named \"", name, '"'),
                core::unknown_name_hint(name, names()));
  }
  return found->make(input);
}

}  // namespace yoke::models
