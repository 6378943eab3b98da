#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yoke/image/gpu_request.hpp"
#include "yoke/image/host_gpus.hpp"
#include "yoke/image/tree.hpp"

namespace yoke::image {

struct InjectedNode {
  std::string path{};
  Node node{};
  std::string device{};  ///< the card's CDI name, "0" or "0:1"; empty: goes with any card
  bool is_there = true;  ///< false: the driver makes it later (capability nodes)
  std::string why{};
};

enum class InjectedKind { library, program, firmware, socket, configuration };

/// A file of the host at a place of the container, read-only.
struct InjectedFile {
  InjectedKind kind = InjectedKind::library;
  std::string host{};  ///< without links
  std::string path{};  ///< in the container
  std::string why{};
};

struct InjectedLink {
  std::string path{};
  std::string target{};
  std::string why{};
};

/// A file that is computed, so that nothing has to run in the container.
struct InjectedText {
  std::string path{};
  std::string content{};
  std::string why{};
};

struct InjectedVariable {
  std::string name{};
  std::string value{};
  std::string why{};
};

/// All that a container gets for its cards, each with the reason.
struct InjectionPlan {
  std::string driver{};  ///< empty: no driver, so nothing is injected
  std::string mig_layout{};
  std::string request{};            ///< who asked for what
  std::vector<std::string> gpus{};  ///< "0: NVIDIA H200, minor 1"
  std::vector<InjectedNode> nodes{};
  std::vector<InjectedFile> files{};
  std::vector<InjectedLink> links{};
  std::vector<InjectedText> texts{};
  std::vector<InjectedVariable> variables{};
  std::vector<unsigned> groups{};  ///< of nodes that not everybody may open
  std::vector<std::string> warnings{};

  [[nodiscard]] bool empty() const noexcept { return nodes.empty() && files.empty(); }
};

struct InjectionOptions {
  std::string library_folder{};            ///< in the container; empty: where the host has them
  std::string program_folder{};            ///< likewise
  std::vector<std::string> search_path{};  ///< more folders in which the driver may lie
  bool privileged = false;                 ///< the container sees all devices anyway
  bool systemd_cgroups = false;            ///< device rules may be dropped when systemd reloads
  bool extra_gdrcopy = false;
  bool extra_gds = false;
  bool extra_infiniband = false;
  bool extra_nvswitch = false;
  std::vector<int> imex_channels{};
};

/// Computes what a request gets on this host. Looks at `image`, where one is given, to compute its
/// linker cache.
///
/// Nodes are written in the order of the request; inside, cards count from 0 in NVML's order.
/// Errors: not_found for cards that are not there; unsupported with the reason for an image whose
///   NVIDIA_REQUIRE_* the host does not meet.
/// Cost: some hundred small reads; no library is loaded and nothing is run.
[[nodiscard]] InjectionPlan plan_injection(const Tree& host, const GpuRequest& request,
                                           const Tree* image = nullptr,
                                           const InjectionOptions& options = {});

/// What changes when the driver, the cut of the cards or the plan itself do: kept with a spec that
/// is written once, and compared before it is used.
[[nodiscard]] std::string plan_digest(const InjectionPlan& plan);

/// The links /dev/char/MAJOR:MINOR that a container under systemd needs so that its device rules
/// survive a reload; empty where all are there.
[[nodiscard]] std::vector<std::string> missing_char_links(const Tree& host,
                                                          const InjectionPlan& plan);

}  // namespace yoke::image
