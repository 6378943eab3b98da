#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/image_parts.hpp"

namespace yoke::image {

/// A wheel with the hashes of the files that may stand for it.
struct LockedWheel {
  std::string name{};  ///< canonical
  std::string version{};
  std::vector<std::string> hashes{};  ///< sha256, 64 hexadecimal digits each
};

/// Which wheels an image holds: a pip requirements file with hashes, sorted by layer and name.
struct WheelLock {
  std::string torch{};   ///< "2.9.1+cu128" as the head says; empty: it has no head
  std::string python{};  ///< "3.11"; likewise
  std::vector<LockedWheel> wheels{};

  [[nodiscard]] const LockedWheel* find(std::string_view name) const;
};

/// Reads a lock of ours or any requirements file in which each line has a version and a hash.
/// Errors: corrupt_data with `what` and the line.
[[nodiscard]] WheelLock read_lock(std::string_view text, std::string_view what);

/// The lock that `pip install --report` stands for. Errors: corrupt_data with `what`.
[[nodiscard]] WheelLock lock_of_report(std::string_view report, std::string_view what);

/// The whole lock, under one heading per layer.
[[nodiscard]] std::string write_lock(const WheelLock& lock, const ImageParts& parts);

/// The part of it that is one layer; empty: none of its wheels are.
[[nodiscard]] std::string lock_of_layer(const WheelLock& lock, const ImageParts& parts,
                                        std::string_view layer);

}  // namespace yoke::image
