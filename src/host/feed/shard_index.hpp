#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file_reader.hpp"
#include "yoke/feed/tar_shards.hpp"

namespace yoke::feed {

/// The samples of one shard.
struct ShardIndex {
  struct Sample {
    std::uint64_t offset = 0;  ///< of the image's bytes
    std::uint64_t size = 0;
    std::int64_t label = -1;
    std::uint64_t key = 0;  ///< where in `keys` it begins
    std::uint64_t key_length = 0;
  };
  std::vector<Sample> samples;
  std::string keys;
  std::int64_t lost = 0;
};

/// Walks the shard. Errors: TarReader's and SampleGroups'.
[[nodiscard]] ShardIndex index_shard(const FileReader& shard, DamagedShards damaged);

/// The index as bytes, with what it was made from; and back. Nothing where the bytes are damaged,
/// of another version, or of a shard that has changed.
[[nodiscard]] std::string to_bytes(const ShardIndex& index, const FileReader& shard);
[[nodiscard]] std::optional<ShardIndex> from_bytes(std::string_view bytes, const FileReader& shard);

/// From the cache, or made anew and put there. A cache that cannot be used costs time, no more.
[[nodiscard]] ShardIndex cached_index(const FileReader& shard, DamagedShards damaged);

}  // namespace yoke::feed
