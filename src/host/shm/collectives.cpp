#include <algorithm>
#include <cstring>
#include <utility>

#include "call.hpp"
#include "team_state.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

std::byte* bytes_of(void* data) { return static_cast<std::byte*>(data); }
const std::byte* bytes_of(const void* data) { return static_cast<const std::byte*>(data); }

// Of nothing, and to itself, it is allowed: `in` may be a place in `out`, and both null.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

void Team::State::check_rank(int rank, const char* role) const {
  if (rank >= 0 && rank < engine.size()) return;
  throw Error(Code::invalid_argument, core::text("rank ", engine.rank(), ": ", role, " rank ", rank,
                                                 ": the team has ", engine.size(), " ranks"));
}

void Team::State::check_peer(int rank, const char* role) const {
  check_rank(rank, role);
  if (rank != engine.rank()) return;
  throw Error(Code::invalid_argument, core::text("rank ", rank, ": ", role, " itself"));
}

void Team::State::check_reduction(Dtype dtype, Reduction reduction) const {
  if (reduction != Reduction::mean || is_floating(dtype)) return;
  throw Error(
      Code::invalid_argument,
      core::text("rank ", engine.rank(), ": mean of ", name(dtype), ": needs a floating type"),
      "reduce a sum, and divide it");
}

// Every rank cuts the call into the same parts, so that a part is in the same chunk everywhere.
void Team::State::run(const StagedCall& staged_call) {
  engine.check();
  const std::size_t total = staged_call.call.count;
  const std::size_t block_bytes = staged_call.blocks * size_of(staged_call.call.dtype);
  const std::size_t most = chunk_bytes / block_bytes;
  Ticket last;
  for (std::size_t begin = 0; begin == 0 || begin < total; begin += most) {
    const std::size_t chunk = next_chunk++ % kChunks;
    Part part{begin, std::min(most, total - begin), chunk * chunk_bytes, engine.started() + 1};
    engine.wait({last_use[chunk]});
    engine.wait_all_finished(last_use[chunk]);
    staged_call.fill(part);
    Engine::Task task{.call = staged_call.call,
                      .until_all_finished = staged_call.until_all_finished};
    task.call.part = part.count;
    task.call.offset = part.offset;
    task.work = [this, &staged_call, part] { staged_call.work(part); };
    if (staged_call.after) task.after = [&staged_call, part] { staged_call.after(part); };
    last = engine.start(std::move(task));
    last_use[chunk] = last.sequence;
    engine.progress();
  }
  engine.wait(last);
}

// `blocks[r]` is where the elements of the slice's rank r begin.
void Team::State::reduce_slice(const std::vector<const std::byte*>& blocks, const Call& call,
                               std::uint64_t sequence, std::size_t count,
                               std::span<std::byte* const> destinations) const {
  std::vector<Source> sources;
  double divisor = 0.0;
  for (int rank = 0; rank < engine.size(); ++rank) {
    const bool weighted = call.reduction == Reduction::mean;
    const Contribution mine = weighted ? engine.contribution(rank, sequence) : Contribution{};
    divisor += mine.count;
    if (mine.scale != 0.0) sources.push_back({blocks[index_of(rank)], mine.scale});
  }
  reduce({.dtype = call.dtype,
          .reduction = call.reduction,
          .sources = sources,
          .divisor = divisor,
          .destinations = destinations,
          .count = count});
}

// Note [Everybody writes everywhere]
// A rank reads its slice of all n buffers (B bytes in all) and writes the result to all of them (B
// bytes), into lines that it has in its cache from reading. Were each rank to write only its own
// buffer and to copy the other slices from their makers, it would move (n - 1) / n of B more.
void Team::State::reduce_in_place(const Region& region, const Call& call,
                                  std::uint64_t sequence) const {
  const std::size_t element = size_of(call.dtype);
  const Slice slice = slice_of(call.part, element, call.offset, engine.rank(), engine.size());
  if (slice.count == 0) return;
  std::vector<std::byte*> places;
  for (std::byte* const base : region.base) {
    places.push_back(base + call.offset + slice.begin * element);
  }
  const std::vector<const std::byte*> sources(places.begin(), places.end());
  reduce_slice(sources, call, sequence, slice.count, places);
}

Ticket Team::start_all_reduce(const SharedBuffer& buffer, std::size_t byte_offset,
                              Elements elements, Reduction reduction, Contribution contribution) {
  State& state = *state_;
  state.engine.check();
  state.check_reduction(elements.dtype, reduction);
  const std::size_t element = size_of(elements.dtype);
  if (byte_offset > buffer.size() || elements.count > (buffer.size() - byte_offset) / element ||
      byte_offset % element != 0) {
    throw Error(Code::invalid_argument,
                core::text("rank ", rank(), ": all-reduce ", elements.count, ' ',
                           name(elements.dtype), " at byte ", byte_offset, " of a buffer of ",
                           buffer.size(), " B: lies outside or is not aligned"));
  }
  if (buffer.region_ && buffer.region_->team != &state) {
    throw Error(Code::invalid_argument,
                core::text("rank ", rank(), ": all-reduce: the buffer is of another team"));
  }
  Engine::Task task{.call = call_of(Operation::all_reduce, elements), .until_all_finished = true};
  task.call.reduction = reduction;
  task.call.contribution = contribution;
  task.call.region = buffer.region_ ? buffer.region_->number : 0;
  task.call.offset = byte_offset;
  const std::uint64_t sequence = state.engine.started() + 1;
  task.work = [&state, region = buffer.region_, call = task.call, sequence] {
    if (region) state.reduce_in_place(*region, call, sequence);
  };
  return state.engine.start(std::move(task));
}

void Team::all_reduce(void* data, Elements elements, Reduction reduction,
                      Contribution contribution) {
  State& state = *state_;
  state.check_reduction(elements.dtype, reduction);
  const std::size_t element = size_of(elements.dtype);
  Call call = call_of(Operation::all_reduce, elements);
  call.reduction = reduction;
  call.contribution = contribution;
  const auto at = [&](const Part& part) { return bytes_of(data) + part.begin * element; };
  state.run({.call = call,
             .until_all_finished = true,
             .fill =
                 [&](const Part& part) {
                   copy_bytes(state.staged(part, rank()), at(part), part.count * element);
                 },
             .work =
                 [&](const Part& part) {
                   Call one = call;
                   one.part = part.count;
                   one.offset = part.offset;
                   state.reduce_in_place(*state.staging, one, part.sequence);
                 },
             .after =
                 [&](const Part& part) {
                   copy_bytes(at(part), state.staged(part, rank()), part.count * element);
                 }});
}

void Team::broadcast(void* data, Elements elements, int root) {
  State& state = *state_;
  state.check_rank(root, "broadcast from");
  const std::size_t element = size_of(elements.dtype);
  Call call = call_of(Operation::broadcast, elements);
  call.root = root;
  const auto move = [&](const Part& part, bool from_root) {
    std::byte* const here = bytes_of(data) + part.begin * element;
    std::byte* const there = state.staged(part, root);
    copy_bytes(from_root ? there : here, from_root ? here : there, part.count * element);
  };
  state.run({.call = call,
             .fill =
                 [&](const Part& part) {
                   if (rank() == root) move(part, true);
                 },
             .work =
                 [&](const Part& part) {
                   if (rank() != root) move(part, false);
                 }});
}

void Team::State::gather(Operation operation, const void* in, void* out, const Elements& each) {
  const std::size_t element = size_of(each.dtype);
  run({.call = call_of(operation, each),
       .fill =
           [&](const Part& part) {
             copy_bytes(staged(part, engine.rank()), bytes_of(in) + part.begin * element,
                        part.count * element);
           },
       .work =
           [&](const Part& part) {
             for (int rank = 0; rank < engine.size(); ++rank) {
               const std::size_t place = index_of(rank) * each.count + part.begin;
               copy_bytes(bytes_of(out) + place * element, staged(part, rank),
                          part.count * element);
             }
           }});
}

void Team::all_gather(const void* in, void* out, Elements each) {
  state_->gather(Operation::all_gather, in, out, each);
}

// Staging holds one block per receiving rank, each of part.count elements.
void Team::State::fill_blocks(const Part& part, const void* in, const Elements& each) const {
  const std::size_t element = size_of(each.dtype);
  const std::size_t bytes = part.count * element;
  for (int to = 0; to < engine.size(); ++to) {
    const std::size_t place = index_of(to) * each.count + part.begin;
    copy_bytes(staged(part, engine.rank()) + index_of(to) * bytes, bytes_of(in) + place * element,
               bytes);
  }
}

void Team::reduce_scatter(const void* in, void* out, Elements each, Reduction reduction,
                          Contribution contribution) {
  State& state = *state_;
  state.check_reduction(each.dtype, reduction);
  const std::size_t element = size_of(each.dtype);
  Call call = call_of(Operation::reduce_scatter, each);
  call.reduction = reduction;
  call.contribution = contribution;
  state.run({.call = call,
             .blocks = index_of(size()),
             .fill = [&](const Part& part) { state.fill_blocks(part, in, each); },
             .work =
                 [&](const Part& part) {
                   if (part.count == 0) return;
                   std::vector<const std::byte*> blocks;
                   for (int from = 0; from < size(); ++from) {
                     blocks.push_back(state.staged(part, from) +
                                      index_of(rank()) * part.count * element);
                   }
                   std::byte* const here = bytes_of(out) + part.begin * element;
                   state.reduce_slice(blocks, call, part.sequence, part.count, {&here, 1});
                 }});
}

void Team::all_to_all(const void* in, void* out, Elements each) {
  State& state = *state_;
  const std::size_t element = size_of(each.dtype);
  state.run({.call = call_of(Operation::all_to_all, each),
             .blocks = index_of(size()),
             .fill = [&](const Part& part) { state.fill_blocks(part, in, each); },
             .work =
                 [&](const Part& part) {
                   const std::size_t bytes = part.count * element;
                   for (int from = 0; from < size(); ++from) {
                     const std::size_t place = index_of(from) * each.count + part.begin;
                     copy_bytes(bytes_of(out) + place * element,
                                state.staged(part, from) + index_of(rank()) * bytes, bytes);
                   }
                 }});
}

void Team::barrier() {
  Engine& engine = state_->engine;
  engine.wait(engine.start({.call = call_of(Operation::barrier, {.dtype = Dtype::uint8})}));
}

void Team::send(const void* data, Elements elements, int to) {
  state_->check_peer(to, "send to");
  state_->mail.send(data, elements, to);
}

void Team::receive(void* data, Elements elements, int from) {
  state_->check_peer(from, "receive from");
  state_->mail.receive(data, elements, from);
}

}  // namespace yoke::shm
