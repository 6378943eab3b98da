#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/image/host_gpus.hpp"

namespace yoke::image {

/// Who asks for cards, in the order in which they are heard.
struct RequestSources {
  std::optional<std::string> option{};  ///< --gpus, as docker writes it
  std::vector<std::string> cdi{};       ///< CDI names: nvidia.com/gpu=0
  std::vector<std::string> mounts{};    ///< targets of mounts of /dev/null
  core::EnvironmentMap given{};         ///< -e: the one who starts the container says it
  core::EnvironmentMap image{};         ///< baked into the image
  bool allow_image = false;             ///< hear the image's own variables
};

struct GpuRequest {
  enum class Kind {
    nothing,  ///< neither driver nor cards
    driver,   ///< the driver's files without a card
    some,
    all,
  };
  Kind kind = Kind::nothing;
  std::vector<std::string> names{};  ///< of some: indexes, UUIDs, MIG as 0:1 or MIG-UUID
  std::optional<int> count{};        ///< of some: so many, from the first on
  std::set<std::string> capabilities{};
  std::vector<std::string> conditions{};  ///< NVIDIA_REQUIRE_*, all of which have to hold
  std::string from{};                     ///< who asked, in words
  std::vector<std::string> warnings{};
};

/// What is asked for: the option, CDI names, mounts, variables given, and those of the image only
/// where allowed. Not set, empty or void is nothing; capabilities default to compute and utility.
/// Errors: invalid_argument quoting a value that cannot be read.
[[nodiscard]] GpuRequest read_gpu_request(const RequestSources& sources);

/// A card or slice that was chosen.
struct ChosenGpu {
  const HostGpu* gpu = nullptr;
  const MigSlice* slice = nullptr;  ///< null: the whole card
};

/// The cards of a request, in the order of their names.
/// Errors: not_found with the number of cards and slices for a name that none has.
[[nodiscard]] std::vector<ChosenGpu> choose_gpus(const GpuRequest& request, const HostGpus& host);

/// What conditions are compared with; empty: not known.
struct ConditionFacts {
  std::string cuda{};
  std::string driver{};
  std::string arch{};
  std::vector<std::string> brands{};
};

/// What the matrix knows of this driver and card.
[[nodiscard]] ConditionFacts condition_facts(const HostGpus& host);

/// Whether "cuda>=12.0,driver>=535 brand=tesla" holds: spaces are or, commas are and. Empty: it
/// does; else the reason.
[[nodiscard]] std::string unmet(const std::string& condition, const ConditionFacts& facts);

}  // namespace yoke::image
