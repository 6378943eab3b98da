#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "yoke/feed/encoded_images.hpp"

namespace yoke::feed {

/// What happens with a shard that was cut short.
enum class DamagedShards {
  refuse,  ///< corrupt_data with its path and the offset
  skip,    ///< its whole samples are kept, one warning says what was lost
};

struct TarShardsOptions {
  DamagedShards damaged = DamagedShards::refuse;
  bool cache = true;  ///< keep the index in core::cache_folder() for the next process
};

/// Images in tar archives in WebDataset's layout: members of one name up to the first dot are a
/// sample; jpg, jpeg, png or webp is its image, cls its label in decimal digits.
///
///   const TarShards train(TarShards::find("imagenet/train"));  // all its .tar files, by name
///
/// Samples are found by an index, so they can be shuffled, shared out and resumed one by one, and
/// ranks may outnumber shards. It is made in one pass over the headers and used again as long as
/// sizes and times of change are the same.
///
/// Owns: an open file for each shard. Errors of the constructor: those of opening; corrupt_data
///   with the shard and the member or offset; unsupported for packed archives and for samples
///   without an image.
/// Cost: a shard's headers once per machine; about 60 bytes a sample.
class TarShards final : public EncodedImages {
 public:
  explicit TarShards(const std::vector<std::filesystem::path>& shards,
                     TarShardsOptions options = {});
  ~TarShards() override;

  /// `path` itself, or the .tar files of a folder, by the bytes of their names.
  /// Errors: not_found with the path, also for a folder without any.
  [[nodiscard]] static std::vector<std::filesystem::path> find(const std::filesystem::path& path);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] std::int64_t label(std::int64_t index) const override;
  [[nodiscard]] std::span<const std::byte> read(std::int64_t index,
                                                std::vector<std::byte>& memory) const override;
  [[nodiscard]] std::string origin(std::int64_t index) const override;
  [[nodiscard]] std::string kind() const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;
  [[nodiscard]] const std::vector<std::string>& class_names() const override;

  /// Samples that were begun in damaged shards and left out.
  [[nodiscard]] std::int64_t lost_samples() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
