#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "yoke/comm/group.hpp"

namespace yoke::core {
struct RankFacts;
class TelemetryWriter;
}  // namespace yoke::core

namespace yoke::comm {

struct WorldOptions {
  std::string backend =
      "auto";  ///< auto, shm, gloo or nccl; auto: nccl on cards, shm on one host, else gloo
  int rank{0};
  int world_size{1};
  int local_rank{0};
  int local_world_size{1};
  std::string master_address = "127.0.0.1";  ///< where rank 0 serves the store
  int master_port{0};                        ///< needed for more than one rank
  std::optional<int>
      store_descriptor{};  ///< a listening socket that rank 0 inherited, in place of the port
  bool store_served_by_agent = false;  ///< torchrun's agent serves the store
  std::string job_id{};
  std::optional<at::Device>
      device{};  ///< default: the card `local_rank` where there is one, else the CPU
  std::string gloo_interface{};
  bool check_calls =
      false;  ///< compare what the ranks call before each collective (gloo, nccl; slow)
  std::chrono::milliseconds join_timeout{60'000};  ///< for all ranks to appear
  std::chrono::milliseconds timeout{300'000};      ///< for each collective
};

/// The ranks of one training run as this rank sees them.
///
///   yoke::World world = yoke::World::from_environment();
///   std::cout << world.rank() << " of " << world.size() << " on " << world.device() << "\n";
///
/// Ranks: joining is collective. Owns: the store, the groups, the telemetry record. Moves, does not
/// copy. Threads: one at a time. Errors: timeout naming the ranks that did not appear;
/// invalid_argument for a rank that
///   joined twice, two ranks on one card, or an unknown backend; unsupported where a backend cannot
///   serve.
class World {
 public:
  /// Joins by what the innermost launcher has set (design: environment contract); alone where there
  /// is none. YOKE_BACKEND, YOKE_TIMEOUT (seconds), YOKE_CHECK_COLLECTIVES and GLOO_SOCKET_IFNAME
  /// change the defaults.
  [[nodiscard]] static World from_environment();
  [[nodiscard]] static World join(const WorldOptions& options);
  [[nodiscard]] static WorldOptions options_from(const core::RankFacts& facts);
  /// A member of a group that exists already (ranks as threads): see local_groups().
  [[nodiscard]] static World of(std::unique_ptr<Group> group, at::Device device = at::kCPU);

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] int local_rank() const noexcept;
  [[nodiscard]] int local_size() const noexcept;
  [[nodiscard]] bool is_main() const noexcept { return rank() == 0; }
  [[nodiscard]] bool one_host() const noexcept;
  [[nodiscard]] at::Device device() const noexcept;
  [[nodiscard]] const std::string& job_id() const noexcept;

  /// For tensors on device().
  [[nodiscard]] Group& group() noexcept;
  /// For tensors on the CPU: settings, counts, reports. The same as group() where device() is the
  /// CPU.
  [[nodiscard]] Group& host_group() noexcept;
  /// This rank's record for the monitor and the launcher.
  [[nodiscard]] core::TelemetryWriter& telemetry() noexcept;

 private:
  struct State;
  explicit World(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace yoke::comm

namespace yoke {
using comm::World;
}  // namespace yoke
