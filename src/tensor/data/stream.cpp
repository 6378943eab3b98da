#include "yoke/data/stream.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "serial_torch.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/position.hpp"
#include "yoke/feed/random.hpp"
#include "yoke/feed/slot_ring.hpp"

namespace yoke::data {
namespace {

void check(const std::shared_ptr<const Stream>& stream, const StreamLoaderOptions& options) {
  if (!stream) throw Error(Code::invalid_argument, "make a stream loader: no stream");
  if (options.batch_size < 1 || options.prefetch_batches < 1 || options.shuffle_buffer < 0) {
    throw Error(
        Code::invalid_argument,
        core::text("make a stream loader: batch size ", options.batch_size, ", prefetch_batches ",
                   options.prefetch_batches, " (1 or more), shuffle_buffer ",
                   options.shuffle_buffer, " (0 or more)"));
  }
}

void require_agreement(comm::World& world, const StreamLoaderOptions& options) {
  const feed::Agreement mine{.seed = options.seed,
                             .batch_size = options.batch_size,
                             .world_size = world.size(),
                             .shuffle = options.shuffle_buffer};
  std::string bytes(sizeof mine, '\0');
  std::memcpy(bytes.data(), &mine, sizeof mine);
  std::vector<feed::Agreement> by_rank;
  for (const std::string& theirs : world.host_group().all_gather_bytes(bytes))
    std::memcpy(&by_rank.emplace_back(), theirs.data(), sizeof mine);
  feed::require_agreement(by_rank);
}

// The samples of one epoch, of one rank, in their final order.
class EpochReader {
 public:
  EpochReader(Stream::Reader read, std::int64_t buffer, const StreamPart& part)
      : read_(std::move(read)), buffer_size_(static_cast<std::size_t>(buffer)), part_(part) {}

  // The next one is drawn from as many as the buffer holds, and replaced by the one that follows.
  std::optional<NamedTensors> next() {
    if (buffer_size_ == 0) return read_();
    while (!ended_ && buffer_.size() < buffer_size_) take_in();
    if (buffer_.empty()) return std::nullopt;
    // The part's number stands in for a sample's: parts draw apart from each other.
    feed::Draws draws(
        {.seed = part_.seed, .epoch = part_.epoch, .index = given_++ * part_.count + part_.index});
    std::swap(buffer_[draws.below(buffer_.size())], buffer_.back());
    NamedTensors sample = std::move(buffer_.back());
    buffer_.pop_back();
    return sample;
  }

 private:
  void take_in() {
    auto sample = read_();
    ended_ = !sample;
    if (sample) buffer_.push_back(std::move(*sample));
  }

  Stream::Reader read_;
  std::size_t buffer_size_;
  StreamPart part_;
  std::vector<NamedTensors> buffer_;
  std::int64_t given_ = 0;
  bool ended_ = false;
};

}  // namespace

struct StreamLoader::State {
  struct Slot {
    NamedTensors fields;
    std::int64_t rows = 0;
    std::int64_t epoch = 0;
    bool is_last = false;  // of its epoch
  };

  State(std::shared_ptr<const Stream> source, comm::World& ranks, const StreamLoaderOptions& how)
      : stream(std::move(source)),
        world(ranks),
        options(how),
        slots(static_cast<std::size_t>(how.prefetch_batches) + 1),
        // One thread takes one whole batch after the other: samples come in one order only.
        ring({.slots = slots.size(), .workers = 1, .timeout = how.timeout},
             {.rows = [](std::int64_t) { return 1; },
              .fill = [this](const feed::Piece& piece) { fill(slots[piece.slot]); }}) {}

  // In the ring's thread.
  void fill(Slot& slot) {
    const SerialTorch serial;
    const c10::InferenceMode plain(false);
    const c10::NoGradGuard no_grad;
    if (!reader) {
      const StreamPart part{world_rank, world_size, options.seed, reading_epoch};
      reader.emplace(stream->open(part), options.shuffle_buffer, part);
    }
    std::vector<NamedTensors> samples;
    bool ended = false;
    while (!ended && static_cast<std::int64_t>(samples.size()) < options.batch_size) {
      auto sample = reader->next();
      ended = !sample;
      if (sample) samples.push_back(std::move(*sample));
    }
    slot.fields = samples.empty() ? NamedTensors{} : stream->collate(samples);
    slot.rows = static_cast<std::int64_t>(samples.size());
    slot.epoch = reading_epoch;
    slot.is_last = ended;
    if (!ended) return;
    reader.reset();
    ++reading_epoch;
  }

  void begin(std::int64_t epoch) {
    const bool runs_into = at_start && next_epoch == epoch;
    if (!runs_into) {
      ring.rest();
      holds_slot = false;
      reader.reset();
      reading_epoch = epoch;
      ring.seek(0);
    }
    next_epoch = epoch;
    at_start = false;
    mine_ended = false;
    step = 0;
  }

  const Batch* next() {
    current = {};
    if (at_start) return nullptr;  // the epoch is over
    take();
    const std::vector<std::int64_t> rows = rows_of_all(static_cast<std::int64_t>(current.rows()));
    for (const std::int64_t theirs : rows) current.global_rows += theirs;
    if (current.global_rows > 0) {
      current.epoch = next_epoch;
      current.index = step++;
      return &current;
    }
    at_start = true;
    ++next_epoch;
    return nullptr;
  }

  void take() {
    if (holds_slot) ring.release();
    holds_slot = false;
    if (mine_ended) return;
    const auto ready = ring.next();
    holds_slot = true;
    Slot& slot = slots[ready->slot];
    mine_ended = slot.is_last;
    current.fields = std::move(slot.fields);
    slot.fields = {};
    current.indices.assign(static_cast<std::size_t>(slot.rows), -1);  // streams number nothing
    for (auto& [name, tensor] : current.fields) {
      tensor = tensor.to(world.device());
      if (name == "input") current.input = tensor;
      if (name == "target") current.target = tensor;
    }
  }

  std::vector<std::int64_t> rows_of_all(std::int64_t mine) {
    std::string bytes(sizeof mine, '\0');
    std::memcpy(bytes.data(), &mine, sizeof mine);
    std::vector<std::int64_t> rows;
    for (const std::string& theirs : world.host_group().all_gather_bytes(bytes))
      std::memcpy(&rows.emplace_back(), theirs.data(), sizeof mine);
    return rows;
  }

  std::shared_ptr<const Stream> stream;
  comm::World& world;
  StreamLoaderOptions options;
  int world_rank = world.rank();
  int world_size = world.size();

  std::vector<Slot> slots;
  std::optional<EpochReader> reader;  // the ring's thread's, and so is the next one
  std::int64_t reading_epoch = 0;

  std::int64_t next_epoch = -1;
  std::int64_t step = 0;
  bool at_start = false;    // the ring stands before next_epoch's first batch
  bool mine_ended = false;  // this rank's part of the epoch
  bool holds_slot = false;
  Batch current;
  feed::SlotRing ring;  // last: its thread uses the rest
};

StreamLoader::StreamLoader(std::shared_ptr<const Stream> stream, comm::World& world,
                           const StreamLoaderOptions& options) {
  check(stream, options);
  require_agreement(world, options);
  state_ = std::make_unique<State>(std::move(stream), world, options);
}

StreamLoader::~StreamLoader() = default;

StreamLoader::Epoch StreamLoader::epoch(std::int64_t epoch) {
  if (epoch < 0) throw Error(Code::invalid_argument, core::text("begin epoch ", epoch));
  state_->begin(epoch);
  return Epoch(state_.get());
}

const Batch* StreamLoader::Epoch::next() { return loader_->next(); }

}  // namespace yoke::data
