#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "yoke/data/batch.hpp"
#include "yoke/data/named_dataset.hpp"
#include "yoke/data/placement.hpp"

namespace yoke::comm {
class World;
}

namespace yoke::data {

/// Which samples of an epoch a reader is to give: number `index`, `index + count`, ... of the
/// whole.
struct StreamPart {
  int index = 0;
  int count = 1;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

/// Samples that come one after the other, nobody knows how many.
///
///   struct Lines : yoke::data::Stream {
///     Reader open(const yoke::data::StreamPart& part) const override {
///       auto file = std::make_shared<std::ifstream>("lines.txt");
///       skip(*file, part.index);
///       return [file, part]() -> std::optional<yoke::data::NamedTensors> {
///         std::string line;
///         if (!std::getline(*file, line)) return std::nullopt;
///         skip(*file, part.count - 1);
///         return {{{"input", tokens_of(line)}}};
///       };
///     }
///   };
///
/// Threads: open() and its reader are called from one thread of the loader.
class Stream {
 public:
  using Reader = std::function<std::optional<NamedTensors>()>;

  Stream() = default;
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;
  virtual ~Stream() = default;

  /// A reader of this part from its start; it gives nothing at the end.
  [[nodiscard]] virtual Reader open(const StreamPart& part) const = 0;

  /// From samples to a batch; at least one sample.
  [[nodiscard]] virtual NamedTensors collate(std::span<const NamedTensors> samples) const {
    return stacked(samples);
  }
};

struct StreamLoaderOptions {
  std::int64_t batch_size = 64;       ///< of each rank
  std::int64_t shuffle_buffer = 0;    ///< samples among which the next one is drawn; 0: no shuffle
  std::uint64_t seed = 0;             ///< one for all ranks
  std::int64_t prefetch_batches = 4;  ///< made ahead of the caller
  std::chrono::milliseconds timeout{300'000};  ///< for one batch
};

/// Brings each rank its part of a stream in batches, read ahead by one thread.
///
///   StreamLoader loader(std::make_shared<const Lines>(), world, {.batch_size = 32});
///   for (const Batch& batch : loader.epoch(0)) step(batch["input"]);
///
/// Each sample of an epoch comes once over all ranks. A rank whose part has ended gets batches of 0
/// rows until all have: every rank takes equally many steps.
///
/// Ranks: construction is collective, and so is each step: the ranks tell each other their rows.
/// Owns: its thread and batches. Shares the stream.
/// Threads: one at a time.
/// Errors: invalid_argument for options that cannot be and for ranks that differ in them; from the
///   batch whose turn it is, what the stream threw; timeout.
/// Cost: the buffer, and prefetch_batches + 1 batches; per step one gather of 8 bytes on the host.
class StreamLoader {
 public:
  class Epoch;

  StreamLoader(std::shared_ptr<const Stream> stream, comm::World& world,
               const StreamLoaderOptions& options = {});
  ~StreamLoader();
  StreamLoader(const StreamLoader&) = delete;
  StreamLoader& operator=(const StreamLoader&) = delete;

  /// Begins an epoch; the one after another costs no wait, its first batches are read already. The
  /// range is to be walked once and ends the one before.
  [[nodiscard]] Epoch epoch(std::int64_t epoch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What is left of one epoch. Borrows the loader.
class StreamLoader::Epoch {
 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Epoch* epoch) : epoch_(epoch), batch_(epoch->next()) {}
    [[nodiscard]] const Batch& operator*() const noexcept { return *batch_; }
    Iterator& operator++() {
      batch_ = epoch_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !batch_; }

   private:
    Epoch* epoch_;
    const Batch* batch_;
  };

  [[nodiscard]] Iterator begin() { return Iterator(this); }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

  /// The next batch, valid until the one after it; nullptr at the end. Collective.
  [[nodiscard]] const Batch* next();

 private:
  friend class StreamLoader;
  explicit Epoch(State* loader) : loader_(loader) {}

  State* loader_;
};

}  // namespace yoke::data
