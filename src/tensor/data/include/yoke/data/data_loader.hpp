#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "yoke/data/batch.hpp"
#include "yoke/data/dataset.hpp"
#include "yoke/data/placement.hpp"
#include "yoke/feed/position.hpp"

namespace yoke::comm {
class World;
}

namespace yoke::data {

struct DataLoaderOptions {
  std::int64_t batch_size = 64;  ///< of each rank
  bool shuffle = true;
  std::uint64_t seed = 0;                 ///< one for all ranks
  std::optional<unsigned> num_workers{};  ///< threads; 0: the caller's own makes each batch;
                                          ///< nothing: found by what the caller waits
  bool drop_last = false;                 ///< leave out the last step where it is short
  std::int64_t prefetch_batches = 4;      ///< made ahead of the caller
  bool pin_memory = true;                 ///< where batches go to a card
  bool torch_compat = false;  ///< order and shares of PyTorch's DistributedSampler, its repeats too
  std::chrono::milliseconds timeout{300'000};  ///< for one batch
  /// Bytes of host memory for batches; fewer are then made ahead. 0: no limit.
  std::int64_t memory_budget = 0;
  /// Called with each batch on its device before the caller gets it: MixUp, say. May change all of
  /// it but `rows()`; chances must follow from the batch's epoch and index and a seed alone.
  std::function<void(Batch&)> batch_transform{};
};

/// The same, for evaluation: in the data set's order, each sample once over all ranks, as it is.
[[nodiscard]] DataLoaderOptions evaluation(DataLoaderOptions options);

/// Brings one rank its share of each epoch, in batches on its device, made ahead by threads.
///
///   DataLoader loader(IdxImages("fashion-mnist"), world, {.batch_size = 64, .seed = 7});
///   for (std::int64_t epoch = 0; epoch < 3; ++epoch)
///     for (const Batch& batch : loader.epoch(epoch)) step(batch.input, batch.target);
///
/// In each step the ranks together see the samples that one rank with batch_size x ranks would see,
/// split as evenly as can be; each epoch has each sample once, and equally many steps on every
/// rank. The order follows from (seed, epoch), not from the number of ranks or threads.
///
/// Ranks: with a World, construction is collective and compares options and data over the ranks;
///   nothing else communicates.
/// Owns: its threads and buffers. Shares the data set. Moves, does not copy.
/// Threads: one at a time.
/// Streams: copies to a card run on a stream of its own; the stream that is current when a batch is
///   taken is ordered after them, and the host does not wait.
/// Errors: invalid_argument for options that cannot be, a budget below two batches, an epoch of 0
/// steps, ranks that disagree, a
///   target outside the classes (with the sample); from the batch whose turn it is, what the data
///   set threw, whatever the number of threads; timeout. Then epoch() begins anew.
/// Cost: (prefetch_batches + 2) batches on the host, in one piece of memory, but not more than
///   memory_budget; on a card two batches ahead of the caller.
class DataLoader {
 public:
  class Epoch;

  struct Report {
    std::int64_t batches = 0;            ///< handed out since construction
    std::chrono::nanoseconds waited{0};  ///< how long the caller was blocked for them in all
    std::int64_t ready = 0;              ///< batches that are made now
    unsigned workers = 0;                ///< threads that work now
    std::int64_t left_out = 0;           ///< rows of bad samples
    std::int64_t host_bytes = 0;         ///< of batches, pinned where they go to a card
    std::vector<StageTime> stages{};     ///< the data set's own; the longest limits the threads
  };

  DataLoader(std::shared_ptr<const Dataset> dataset, const Placement& placement,
             const DataLoaderOptions& options = {});
  DataLoader(std::shared_ptr<const Dataset> dataset, comm::World& world,
             const DataLoaderOptions& options = {});

  template <std::derived_from<Dataset> D>
  DataLoader(D dataset, const Placement& placement, const DataLoaderOptions& options = {})
      : DataLoader(share(std::move(dataset)), placement, options) {}
  template <std::derived_from<Dataset> D>
  DataLoader(D dataset, comm::World& world, const DataLoaderOptions& options = {})
      : DataLoader(share(std::move(dataset)), world, options) {}

  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();  ///< waits for samples that are being made; an epoch may be half done

  /// Begins an epoch at its first batch, or where load_state() put it. One at a time: it ends the
  /// one before. Also makes the next epoch's first batches once this one's are made.
  [[nodiscard]] Epoch epoch(std::int64_t epoch);

  /// Of a whole epoch, on every rank.
  [[nodiscard]] std::int64_t steps() const noexcept;

  /// Where the run stands, the batch that was handed out last included.
  [[nodiscard]] feed::Position state() const noexcept;

  /// Goes on from there, with the state's seed: epoch(position.epoch) then yields what was left of
  /// that epoch, also on another number of ranks or with another batch size. Errors:
  /// invalid_argument for a data set of another length.
  void load_state(const feed::Position& position);

  [[nodiscard]] Report report() const;
  [[nodiscard]] const Dataset& dataset() const noexcept;
  [[nodiscard]] const DataLoaderOptions& options() const noexcept;
  [[nodiscard]] const Placement& placement() const noexcept;

 private:
  struct State;

  template <class D>
  static std::shared_ptr<const Dataset> share(D dataset) {
    return std::make_shared<const D>(std::move(dataset));
  }

  std::unique_ptr<State> state_;
};

/// What is left of one epoch: a range to be walked once. Borrows the loader.
class DataLoader::Epoch {
 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Epoch* epoch) : epoch_(epoch), batch_(epoch->next()) {}

    /// Valid until the next batch is taken or another epoch begun; copy it to keep it.
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

  /// The next batch, or nullptr at the end. For loops that are not a range-for.
  [[nodiscard]] const Batch* next();

  /// Batches that this range has in all, those taken included.
  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }

 private:
  friend class DataLoader;
  Epoch(State* loader, std::int64_t number, std::int64_t steps)
      : loader_(loader), number_(number), steps_(steps) {}

  State* loader_;
  std::int64_t number_;  // of the loader's epochs; an older one has ended
  std::int64_t steps_;
  std::int64_t taken_ = 0;
};

}  // namespace yoke::data
