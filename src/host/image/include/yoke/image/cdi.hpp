#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/json.hpp"
#include "yoke/image/injection.hpp"

namespace yoke::image {

/// What a CDI device, or all devices of a spec, change in a container.
struct CdiEdits {
  struct Node {
    std::string path{};
    std::string host_path{};  ///< empty: the same
    std::string type{};
    std::optional<std::int64_t> major{};
    std::optional<std::int64_t> minor{};
    std::optional<std::uint32_t> mode{};
    std::optional<std::uint32_t> gid{};
    std::string permissions{};
  };
  struct Mount {
    std::string host_path{};
    std::string path{};
    std::vector<std::string> options{};
    std::string type{};
  };
  std::vector<std::string> environment{};
  std::vector<Node> nodes{};
  std::vector<Mount> mounts{};
  std::vector<std::uint32_t> groups{};
  core::Json others{};  ///< hooks, netDevices, intelRdt as they stand
};

/// A spec of the Container Device Interface, 1.1.0 at most.
struct CdiSpec {
  std::string version{};
  std::string kind{};  ///< nvidia.com/gpu
  std::map<std::string, std::string> annotations{};
  std::vector<std::pair<std::string, CdiEdits>> devices{};
  CdiEdits edits{};  ///< of all devices
};

/// Reads a spec written by anybody. An unknown field is an error, as is one that the version named
/// in the spec does not have.
/// Errors: corrupt_data naming `what` and the field; unsupported for YAML or a later version.
[[nodiscard]] CdiSpec read_cdi(std::string_view text, std::string_view what);

/// The spec as JSON, in the lowest version that has all fields in use.
[[nodiscard]] std::string write_cdi(const CdiSpec& spec);

/// A plan as a spec: one device for each card and "all". A link becomes a second mount of its file,
/// so that the spec needs no hook. Computed files have to lie on the host: `texts` gives their
/// paths, in the plan's order; without one they are left out.
[[nodiscard]] CdiSpec cdi_of(const InjectionPlan& plan, const std::vector<std::string>& texts = {});

/// Why a spec does not fit the machine any more: another driver, another cut of the cards, another
/// plan, files that are gone. Empty: it fits.
[[nodiscard]] std::string stale_reason(const CdiSpec& spec, const InjectionPlan& now,
                                       const Tree& host);

}  // namespace yoke::image
