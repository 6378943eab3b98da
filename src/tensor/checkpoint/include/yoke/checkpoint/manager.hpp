#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/checkpoint/state_dict.hpp"
#include "yoke/core/json.hpp"

namespace yoke::comm {
class Group;
}

namespace yoke::checkpoint {

/// What a run needs to go on from one of its steps; made and read by whoever trains.
struct RunState {
  core::Json facts{};                         ///< equal on all ranks: counts, positions, settings
  std::map<std::string, StateDict> common{};  ///< equal on all ranks, by file: "model", "optimizer"
  core::Json own_facts{};                     ///< of this rank
  StateDict own{};                            ///< of this rank: random states, its buffers
};

struct ManagerOptions {
  std::filesystem::path folder{};  ///< one folder a checkpoint in it; on several hosts a shared one
  std::int64_t keep = 3;           ///< of the newest; 0: all
  std::int64_t keep_every = 0;     ///< and for ever those of steps that this divides; 0: none
};

/// A checkpoint as it was found.
struct LoadedState {
  std::filesystem::path folder;
  std::int64_t step = 0;
  int ranks = 1;   ///< of the run that saved it
  RunState state;  ///< `own` and `own_facts` empty where that run had no such rank
};

/// Saves a run's state every now and then, and finds the newest one that is whole.
///
///   checkpoint::Manager manager(world.host_group(), {.folder = "runs/a/checkpoints"});
///   if (const auto loaded = manager.load_newest()) take_over(loaded->state);
///   for (...) { step(); if (step % 1000 == 0) manager.save(step, state_now()); }
///
/// Each checkpoint is a folder `step-000000001000` that is there whole or not at all, with a hash
/// of every file: what is equal on all ranks is written once, by rank 0, each rank's own part by
/// itself (docs/checkpoint.md).
///
/// Ranks: construction and every call are collective. Borrows the group, which lives on the CPU.
/// Threads: one at a time.
class Manager {
 public:
  Manager(comm::Group& group, ManagerOptions options);

  /// Returns the folder. Then removes older ones that need not be kept; never the last good one.
  /// Errors: io, on every rank, with the rank that could not write and why; what was there before
  ///   stays, and nothing half-written is left. invalid_argument where the step was saved before
  ///   and is whole.
  /// Cost: one copy of the state to the page cache and its way to the disk; the ranks wait.
  std::filesystem::path save(std::int64_t step, const RunState& state);

  /// The newest checkpoint all of whose bytes are as they were written; nothing where there is
  /// none. What is skipped is said as a warning, with its reason. Tensors lie on the CPU and in the
  /// mapped files.
  [[nodiscard]] std::optional<LoadedState> load_newest();

  /// That one. Errors: not_found; corrupt_data naming the file.
  [[nodiscard]] LoadedState load(const std::filesystem::path& folder);

 private:
  void write_part(const std::filesystem::path& folder, const RunState& state) const;
  void remove_old() const;

  comm::Group& group_;
  ManagerOptions options_;
};

/// The folder's name for a step: names sort as their steps do.
[[nodiscard]] std::string folder_name(std::int64_t step);

}  // namespace yoke::checkpoint
