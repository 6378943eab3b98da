#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace yoke::feed {

/// A name as WebDataset splits it: "train/0017.seg.png" is the key "train/0017" and the suffix
/// "seg.png", in lower case.
struct MemberName {
  std::string_view key;
  std::string suffix;
};

/// Nothing for a name without a dot in its last part.
[[nodiscard]] std::optional<MemberName> split_member_name(std::string_view name);

/// Where a sample's image lies, and its label.
struct SampleEntry {
  std::string key;
  std::uint64_t offset = 0;  ///< of the image
  std::uint64_t size = 0;
  std::int64_t label = -1;  ///< -1: none
};

/// Joins neighbouring members of one key to samples: an image, and a label in decimal digits under
/// the suffix cls.
///
/// Errors of add(): corrupt_data for a suffix that a sample has already and for a key that has
///   ended before; unsupported for a sample without an image. They name the archive and the member.
class SampleGroups {
 public:
  explicit SampleGroups(std::string archive) : archive_(std::move(archive)) {}

  /// The next member: `bytes` are read only where `wants_bytes` says so.
  void add(std::string_view name, std::uint64_t offset, std::uint64_t size, std::string_view label);

  /// Whether add() looks at this member's bytes: its label.
  [[nodiscard]] static bool is_label(std::string_view name);

  /// Ends the last sample.
  void finish();

  /// The archive ends within the member `name`; empty: nobody knows which. Ends the last sample
  /// where it is known to be whole, else forgets it; whether a begun sample is lost.
  bool finish_damaged(std::string_view name);

  [[nodiscard]] std::vector<SampleEntry>& samples() noexcept { return samples_; }

 private:
  void begin(std::string_view key, std::string_view name);
  [[noreturn]] void fail(std::string_view name, const std::string& what) const;

  std::string archive_;
  std::vector<SampleEntry> samples_;
  std::unordered_set<std::string> ended_;
  std::optional<SampleEntry> open_;
  std::vector<std::string> suffixes_;  // of the open sample
  bool has_image_ = false;
};

}  // namespace yoke::feed
