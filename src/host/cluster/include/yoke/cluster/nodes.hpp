#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace yoke::cluster {

/// Of which machines a job consists, and where they meet.
struct NodeOptions {
  int fewest{1};
  int most{1};
  std::optional<int> node_rank{};  ///< absent: in the order in which the machines come
  std::string endpoint_host{};     ///< where the coordinator listens: the first machine
  int endpoint_port{0};            ///< 0: master_port, else kCoordinatorPort
  std::string master_address{};    ///< torchrun's static form: the same as endpoint_host
  int master_port{0};
  std::string own_address{};  ///< by which the others reach this machine; empty: the one from which
                              ///< this machine reaches the coordinator
  std::string interface{};    ///< a name, or a network such as 10.77.0.0/24
  std::filesystem::path secret_file{};
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call{5'000};    ///< with fewest < most: wait so long for one more
  std::chrono::milliseconds lost_after{15'000};  ///< a machine without a word for so long is lost
};

inline constexpr int kCoordinatorPort = 29'400;  // torchrun's

}  // namespace yoke::cluster
