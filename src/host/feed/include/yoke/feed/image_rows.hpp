#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/random.hpp"
#include "yoke/feed/transforms.hpp"

namespace yoke::feed {

/// What happens with an image that cannot be read or decoded.
enum class BadSamples {
  raise,       ///< its error ends the run
  skip,        ///< its row is zeros and counts for nothing: RowResult::good is false
  substitute,  ///< another image takes its place, which one follows from (seed, epoch, index)
};

/// "raise", "skip" or "substitute". Errors: invalid_argument with the names known.
[[nodiscard]] BadSamples bad_samples_from_name(std::string_view name);

struct BadSample {
  std::int64_t index = 0;
  std::string origin{};
  std::string reason{};
};

struct ImageRowsOptions {
  DecodeOptions decode{};
  BadSamples bad_samples = BadSamples::raise;
  std::int64_t most_bad = 1000;  ///< different images; one more ends the run
  /// Called once for each bad image, from the thread that found it, one at a time.
  std::function<void(const BadSample&)> on_bad{};
};

/// Where the time of all threads has gone so far.
struct RowTimes {
  std::chrono::nanoseconds read{0};       ///< from the source
  std::chrono::nanoseconds transform{0};  ///< decoding and all steps
};

struct RowResult {
  std::int64_t index = 0;  ///< of the image whose pixels these are
  std::int64_t label = -1;
  bool good = true;
};

/// Fills rows of batches with images: the one function from (seed, epoch, index) to pixels.
///
///   const ImageRows rows(open_images("imagenet/train"), transforms);
///   const RowResult result = rows.fill({.seed = 7, .epoch = 3, .index = 41}, row);
///
/// A row depends on its key alone, not on the thread, the rank, or what was filled before.
///
/// Owns: the images, and a workspace for each thread that is inside fill(). Threads: any.
/// Errors of fill(): what reading and decoding threw, with the index and the origin, where the
///   policy is to raise, beyond most_bad, and where ten substitutes are bad too.
class ImageRows {
 public:
  ImageRows(std::shared_ptr<const EncodedImages> images, Transforms transforms,
            ImageRowsOptions options = {});
  ~ImageRows();
  ImageRows(const ImageRows&) = delete;
  ImageRows& operator=(const ImageRows&) = delete;

  [[nodiscard]] const EncodedImages& images() const noexcept;
  [[nodiscard]] const Transforms& transforms() const noexcept;

  /// Requires: row.size() == transforms().bytes(), and an index of the images.
  RowResult fill(const SampleKey& key, std::span<std::byte> row) const;

  [[nodiscard]] RowTimes times() const;

  /// The bad images so far, by index: for a list in the run's folder.
  [[nodiscard]] std::vector<BadSample> quarantine() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
