#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "yoke/feed/pack.hpp"

namespace yoke::feed {

/// Where packed samples go, in the order of their numbers.
class PackSink {
 public:
  PackSink() = default;
  PackSink(const PackSink&) = delete;
  PackSink& operator=(const PackSink&) = delete;
  virtual ~PackSink() = default;

  /// How many samples are there already: the first that is still to be added.
  [[nodiscard]] virtual std::int64_t first() const = 0;

  /// Label -1: none. A broken sample that is left out is not added.
  virtual void add(std::int64_t index, std::int64_t label, std::span<const std::byte> jpeg) = 0;

  /// All are added; the target is whole when this returns.
  virtual void finish() = 0;
};

/// The folder that a sink writes into: an LMDB grows beside its target.
[[nodiscard]] std::filesystem::path working_folder(const std::filesystem::path& target,
                                                   PackFormat format);

[[nodiscard]] std::unique_ptr<PackSink> make_tar_sink(const std::filesystem::path& folder,
                                                      std::int64_t samples,
                                                      std::int64_t shard_samples);
[[nodiscard]] std::unique_ptr<PackSink> make_lmdb_sink(const std::filesystem::path& folder,
                                                       const std::filesystem::path& target);

}  // namespace yoke::feed
