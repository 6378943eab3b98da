#include "yoke/feed/survey.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "image_suffix.hpp"
#include "yoke/core/error.hpp"
#include "yoke/feed/slot_ring.hpp"

namespace yoke::feed {
namespace {

constexpr std::int64_t kBatch = 64;
constexpr std::size_t kSlots = 8;

struct Finding {
  std::optional<ImageFacts> facts;
  std::int64_t bytes = 0;
  int warnings = 0;
  std::string reason;  // empty: whole
};

struct Looker {
  explicit Looker(const DecodeOptions& options) : decoder(options) {}

  Finding look(const EncodedImages& images, std::int64_t index, bool decode) {
    Finding finding;
    try {
      const auto file = images.read(index, memory);
      finding.bytes = static_cast<std::int64_t>(file.size());
      finding.facts = decoder.open(file);
      if (decode) {
        decoder.read(image);
        finding.warnings = decoder.warnings();
      }
    } catch (const Error& error) {
      finding.reason = error.message();
    }
    return finding;
  }

  ImageDecoder decoder;
  std::vector<std::byte> memory;
  Image image;
};

bool is_other_suffix(const std::string& origin, ImageFormat format) {
  const std::string suffix = lower_suffix(origin);
  if (!is_image_suffix(suffix)) return false;
  const bool says_jpeg = suffix == "jpg" || suffix == "jpeg";
  if (format == ImageFormat::jpeg) return !says_jpeg;
  return suffix != (format == ImageFormat::png ? "png" : "webp");
}

Survey::Sides sides_of(std::vector<int>& values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

class Tally {
 public:
  explicit Tally(const EncodedImages& images) : images_(images) {
    survey_.per_class.resize(static_cast<std::size_t>(images.num_classes()), 0);
  }

  void add(std::int64_t index, const Finding& finding) {
    ++survey_.samples;
    survey_.bytes += finding.bytes;
    const std::int64_t label = images_.label(index);
    if (label >= 0) ++survey_.per_class[static_cast<std::size_t>(label)];
    if (!finding.reason.empty()) {
      survey_.broken.push_back({index, images_.origin(index), finding.reason});
    }
    survey_.with_warnings += finding.warnings > 0 ? 1 : 0;
    if (finding.facts) add(index, *finding.facts);
  }

  Survey finish() {
    survey_.width = sides_of(widths_);
    survey_.height = sides_of(heights_);
    return std::move(survey_);
  }

 private:
  void add(std::int64_t index, const ImageFacts& facts) {
    ++survey_.by_format[static_cast<std::size_t>(facts.format)];
    widths_.push_back(facts.width);
    heights_.push_back(facts.height);
    survey_.progressive += facts.progressive ? 1 : 0;
    survey_.cmyk += facts.cmyk ? 1 : 0;
    survey_.gray += facts.channels <= 2 ? 1 : 0;
    survey_.turned += facts.orientation != 1 ? 1 : 0;
    survey_.other_suffix += is_other_suffix(images_.origin(index), facts.format) ? 1 : 0;
  }

  const EncodedImages& images_;
  Survey survey_;
  std::vector<int> widths_;
  std::vector<int> heights_;
};

}  // namespace

Survey survey(const EncodedImages& images, const SurveyOptions& options) {
  std::vector<std::vector<Finding>> slots(kSlots, std::vector<Finding>(kBatch));
  std::vector<std::unique_ptr<Looker>> lookers;  // one for each thread, and the caller's
  for (unsigned i = 0; i <= options.workers; ++i) {
    lookers.push_back(std::make_unique<Looker>(options.decode_options));
  }
  const std::int64_t batches = (images.size() + kBatch - 1) / kBatch;
  const auto rows = [&](std::int64_t batch) {
    return std::min(kBatch, images.size() - batch * kBatch);
  };
  SlotRing ring({.slots = kSlots, .workers = options.workers, .rows_per_piece = 8},
                {.rows = rows, .fill = [&](const Piece& piece) {
                   Looker& looker = *lookers[static_cast<std::size_t>(piece.worker + 1)];
                   for (std::int64_t row = piece.first; row < piece.last; ++row) {
                     slots[piece.slot][static_cast<std::size_t>(row)] =
                         looker.look(images, piece.ticket * kBatch + row, options.decode);
                   }
                 }});
  ring.seek(0, batches);
  Tally tally(images);
  while (const auto ready = ring.next()) {
    for (std::int64_t row = 0; row < rows(ready->ticket); ++row) {
      tally.add(ready->ticket * kBatch + row, slots[ready->slot][static_cast<std::size_t>(row)]);
    }
    ring.release();
    if (options.progress) {
      options.progress(std::min(images.size(), (ready->ticket + 1) * kBatch));
    }
  }
  return tally.finish();
}

}  // namespace yoke::feed
