#include "yoke/feed/pack.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "pack_sink.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/encode.hpp"
#include "yoke/feed/resize.hpp"
#include "yoke/feed/slot_ring.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBatch = 32;
constexpr std::size_t kSlots = 4;
constexpr std::array<std::string_view, 2> kFormats{"tar", "lmdb"};
constexpr std::string_view kNotes = "pack.json";

struct Packed {
  std::vector<std::byte> jpeg;
  bool kept = false;
  std::string reason;  // empty: whole
};

class Packer {
 public:
  explicit Packer(const PackOptions& options)
      : options_(options), decoder_({.exif = options.exif}) {}

  Packed pack(const EncodedImages& images, std::int64_t index) {
    Packed packed;
    try {
      const auto file = images.read(index, memory_);
      const ImageFacts facts = decoder_.open(file);
      decoder_.read(image_);  // also of a file that is kept: it must be whole
      packed.kept = is_fit(facts);
      if (packed.kept) {
        packed.jpeg.assign(file.begin(), file.end());
      } else {
        packed.jpeg =
            encode_jpeg(is_small(facts) ? image_ : shrunk(), {.quality = options_.quality});
      }
    } catch (const Error& error) {
      packed.reason = error.message();
    }
    return packed;
  }

 private:
  [[nodiscard]] bool is_small(const ImageFacts& facts) const {
    return options_.short_side == 0 || std::min(facts.width, facts.height) <= options_.short_side;
  }

  [[nodiscard]] bool is_fit(const ImageFacts& facts) const {
    return facts.format == ImageFormat::jpeg && !facts.progressive && !facts.cmyk &&
           (facts.orientation == 1 || options_.exif == Exif::ignore) && is_small(facts);
  }

  const Image& shrunk() {
    const int width = image_.width();
    const int height = image_.height();
    const int side = options_.short_side;
    const auto longer = [&](int wide, int narrow) {
      return static_cast<int>(std::int64_t{side} * wide / narrow);
    };
    resizer_.resize(image_, image_.whole(),
                    {.width = width <= height ? side : longer(width, height),
                     .height = width <= height ? longer(height, width) : side},
                    shrunk_);
    return shrunk_;
  }

  const PackOptions& options_;
  ImageDecoder decoder_;
  Resizer resizer_;
  std::vector<std::byte> memory_;
  Image image_;
  Image shrunk_;
};

// What a pack was made of: another one of it must not go on there.
std::string notes_of(const EncodedImages& images, const PackOptions& options) {
  const core::Json notes{{"images", images.size()},
                         {"fingerprint", std::to_string(images.fingerprint())},
                         {"format", kFormats[static_cast<std::size_t>(options.format)]},
                         {"short_side", options.short_side},
                         {"quality", options.quality},
                         {"exif", options.exif == Exif::apply ? "apply" : "ignore"},
                         {"shard_samples", options.shard_samples},
                         {"skip_broken", options.skip_broken}};
  return core::json_text(notes);
}

void refuse_other(const fs::path& folder, const std::string& notes) {
  std::error_code none;
  if (!fs::exists(folder, none) || fs::is_empty(folder, none)) return;
  if (!fs::exists(folder / kNotes, none)) {
    throw Error(Code::invalid_argument,
                core::text("pack into ", folder.string(), ": something else is there"),
                "name a folder that does not exist yet");
  }
  if (core::read_file(folder / kNotes) != notes) {
    throw Error(Code::invalid_argument,
                core::text("pack into ", folder.string(),
                           ": a pack of other images or with other options is there"),
                core::text("remove the folder, or name another; ", (folder / kNotes).string(),
                           " says what it was"));
  }
}

void write_class_names(const EncodedImages& images, const fs::path& folder) {
  if (images.class_names().empty()) return;
  core::write_atomically(folder / "classes.txt", core::joined(images.class_names(), "\n") + "\n");
}

void check(const PackOptions& options) {
  if (options.short_side < 0 || options.shard_samples < 1 || options.quality < 1 ||
      options.quality > 100) {
    throw Error(Code::invalid_argument,
                core::text("pack: short side ", options.short_side, ", quality ", options.quality,
                           ", ", options.shard_samples, " samples a shard"),
                "give a short side from 0, a quality from 1 to 100, at least 1 sample a shard");
  }
}

class Packing {
 public:
  Packing(const EncodedImages& images, const PackOptions& options)
      : images_(images), options_(options) {
    for (unsigned i = 0; i <= options.workers; ++i) {
      packers_.push_back(std::make_unique<Packer>(options));
    }
  }

  PackReport run(PackSink& sink) {
    first_ = std::min(sink.first(), images_.size());
    report_.samples = images_.size();
    report_.resumed = first_;
    const std::int64_t batches = (images_.size() - first_ + kBatch - 1) / kBatch;
    SlotRing ring({.slots = kSlots, .workers = options_.workers},
                  {.rows = [this](std::int64_t batch) { return rows(batch); },
                   .fill = [this](const Piece& piece) { fill(piece); }});
    ring.seek(0, batches);
    while (const auto ready = ring.next()) {
      take(*ready, sink);
      ring.release();
      if (options_.progress) options_.progress(first_of(ready->ticket) + rows(ready->ticket));
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::int64_t first_of(std::int64_t batch) const { return first_ + batch * kBatch; }
  [[nodiscard]] std::int64_t rows(std::int64_t batch) const {
    return std::min(kBatch, images_.size() - first_of(batch));
  }

  void fill(const Piece& piece) {
    Packer& packer = *packers_[static_cast<std::size_t>(piece.worker + 1)];
    for (std::int64_t row = piece.first; row < piece.last; ++row) {
      slots_[piece.slot][static_cast<std::size_t>(row)] =
          packer.pack(images_, first_of(piece.ticket) + row);
    }
  }

  void take(const SlotRing::Ready& ready, PackSink& sink) {
    for (std::int64_t row = 0; row < rows(ready.ticket); ++row) {
      const std::int64_t index = first_of(ready.ticket) + row;
      const Packed& packed = slots_[ready.slot][static_cast<std::size_t>(row)];
      if (!packed.reason.empty()) {
        leave_out(index, packed.reason);
        continue;
      }
      sink.add(index, images_.label(index), packed.jpeg);
      ++(packed.kept ? report_.kept : report_.encoded);
      report_.bytes += static_cast<std::int64_t>(packed.jpeg.size());
    }
  }

  void leave_out(std::int64_t index, const std::string& reason) {
    report_.broken.push_back({index, images_.origin(index), reason});
    if (options_.skip_broken) return;
    throw Error(Code::corrupt_data,
                core::text("pack sample ", index, " (", images_.origin(index), "): ", reason),
                "mend or remove it, or leave broken images out with --skip-broken");
  }

  const EncodedImages& images_;
  const PackOptions& options_;
  std::vector<std::unique_ptr<Packer>> packers_;  // one for each thread, and the caller's
  std::vector<std::vector<Packed>> slots_{kSlots, std::vector<Packed>(kBatch)};
  std::int64_t first_ = 0;
  PackReport report_;
};

}  // namespace

PackFormat pack_format_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name);
  if (found != kFormats.end()) return static_cast<PackFormat>(found - kFormats.begin());
  throw Error(Code::invalid_argument, core::text("pack format \"", name, "\" is not known"),
              core::unknown_name_hint(name, {kFormats.begin(), kFormats.end()}));
}

PackReport pack(const EncodedImages& images, const fs::path& target, const PackOptions& options) {
  check(options);
  const std::string notes = notes_of(images, options);
  const fs::path folder = working_folder(target, options.format);
  refuse_other(target, notes);
  refuse_other(folder, notes);
  std::error_code none;
  if (folder != target && fs::exists(target / kNotes, none)) {
    return {.samples = images.size(), .resumed = images.size()};
  }
  core::make_writable_folder(folder);
  core::write_atomically(folder / kNotes, notes);
  write_class_names(images, folder);
  const auto sink = options.format == PackFormat::tar
                        ? make_tar_sink(folder, images.size(), options.shard_samples)
                        : make_lmdb_sink(folder, target);
  PackReport report = Packing(images, options).run(*sink);
  sink->finish();
  return report;
}

}  // namespace yoke::feed
