#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "yoke/feed/encoded_images.hpp"

namespace yoke::feed {

/// Images in an LMDB: a folder with data.mdb, or one file.
///
/// Keys with suffixes are joined to samples as in tar shards: "00000017.jpg" and "00000017.cls"
/// (a label in decimal digits), in the order of their bytes. Where no key has a suffix, each value
/// is an image without a label (LSUN's layout).
///
/// Opened for reading, without its lock file and without a reader's slot, so it works on read-only
/// mounts and for any number of processes, and killed ones leave nothing behind; nobody may write
/// to it meanwhile. A process that was forked from this one must open its own.
///
/// Owns: the mapping; read() gives parts of it. Errors of the constructor: not_found and io with
///   the path; corrupt_data where LMDB refuses the file or it is shorter than LMDB's head says (a
///   mapping of it would end in SIGBUS); and those of joining, as for tar shards.
/// Cost: one pass over the keys; about 60 bytes a sample.
class LmdbImages final : public EncodedImages {
 public:
  explicit LmdbImages(const std::filesystem::path& path);
  ~LmdbImages() override;

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] std::int64_t label(std::int64_t index) const override;
  [[nodiscard]] std::span<const std::byte> read(std::int64_t index,
                                                std::vector<std::byte>& memory) const override;
  [[nodiscard]] std::string origin(std::int64_t index) const override;
  [[nodiscard]] std::string kind() const override { return "LMDB"; }
  [[nodiscard]] std::uint64_t fingerprint() const override;
  [[nodiscard]] const std::vector<std::string>& class_names() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
