#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "mail.hpp"
#include "reduce.hpp"
#include "yoke/shm/team.hpp"

namespace yoke::shm {

/// Staging is used in turn by this many parts: copying one overlaps with waiting for another.
inline constexpr std::size_t kChunks = 4;

/// One part of a blocking call: elements [begin, begin + count) of each block, at `offset` of
/// staging.
struct Part {
  std::size_t begin{0};
  std::size_t count{0};
  std::size_t offset{0};
  std::uint64_t sequence{0};
};

struct StagedCall {
  Call call;
  std::size_t blocks{1};  ///< of call.count elements, side by side in staging
  bool until_all_finished{false};
  std::function<void(const Part&)> fill{};  ///< own staging from the caller's memory
  std::function<void(const Part&)> work{};  ///< once all have filled
  std::function<void(const Part&)> after{};
};

struct Team::State {
  State(const Exchange& exchange, const TeamOptions& options);

  Engine engine;
  Mail mail;
  std::size_t chunk_bytes;
  std::shared_ptr<const Region> staging;
  std::array<std::uint64_t, kChunks> last_use{};  // sequence that last worked in each chunk
  std::size_t next_chunk{0};
  std::uint64_t allocations{0};

  void check_rank(int rank, const char* role) const;
  void check_peer(int rank, const char* role) const;  ///< also refuses this rank itself
  void check_reduction(Dtype dtype, Reduction reduction) const;

  [[nodiscard]] std::byte* staged(const Part& part, int rank) const {
    return staging->base[static_cast<std::size_t>(rank)] + part.offset;
  }

  void run(const StagedCall& staged_call);
  void fill_blocks(const Part& part, const void* in, const Elements& each) const;
  void gather(Operation operation, const void* in, void* out, const Elements& each);
  void reduce_slice(const std::vector<const std::byte*>& blocks, const Call& call,
                    std::uint64_t sequence, std::size_t count,
                    std::span<std::byte* const> destinations) const;
  void reduce_in_place(const Region& region, const Call& call, std::uint64_t sequence) const;

  std::vector<std::string> agree(const std::string& mine, const std::string& shape);
  std::shared_ptr<const Region> allocate(std::size_t bytes);
};

}  // namespace yoke::shm
