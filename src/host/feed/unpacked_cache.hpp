#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "bytes.hpp"

namespace yoke::feed {

using Unpack = std::function<std::vector<std::byte>(std::span<const std::byte> packed,
                                                    const std::filesystem::path& path)>;

/// The unpacked form of the gzip file at `path`, whose bytes are `packed`: mapped from the cache
/// folder where it lies already, else made by `unpack`, put there for the next process, and mapped.
///
/// The name in the cache is a hash of the absolute path, size, time of change and gzip's own check
/// sum, so that a file that changes gets a new one. An entry of another size than gzip recorded is
/// made anew. A cache that cannot be written gives memory in place of a mapping, and the process's
/// first such case one warning.
[[nodiscard]] Bytes unpacked_through_cache(const std::filesystem::path& path,
                                           std::span<const std::byte> packed, const Unpack& unpack);

}  // namespace yoke::feed
