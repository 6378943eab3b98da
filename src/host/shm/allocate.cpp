#include <algorithm>
#include <array>
#include <functional>
#include <sstream>
#include <utility>

#include "call.hpp"
#include "memory.hpp"
#include "team_state.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

constexpr std::string_view kFine = "fine";

// A text of fixed size, to be gathered.
using Note = std::array<char, 256>;

Note note_of(std::string_view words) {
  Note note{};
  std::copy_n(words.begin(), std::min(words.size(), note.size() - 1), note.begin());
  return note;
}

// Fields by spaces, after "fine".
std::string written(const SegmentAddress& address) {
  return core::text(kFine, ' ', address.descriptor, ' ', address.nonce[0], ' ', address.nonce[1]);
}

SegmentAddress read_address(const std::string& words, pid_t pid, std::size_t bytes) {
  std::istringstream in(words);
  std::string mark;
  SegmentAddress address;
  in >> mark >> address.descriptor >> address.nonce[0] >> address.nonce[1];
  address.pid = pid;
  address.bytes = bytes;
  return address;
}

// "fine", or the message of the error that `step` throws: no error may leave before all ranks have
// agreed, or the others would wait.
std::string message_of(const std::function<void()>& step) {
  try {
    step();
    return std::string(kFine);
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace

// Every rank's words, in rank order; if one is not fine, the same error on every rank.
std::vector<std::string> Team::State::agree(const std::string& mine, const std::string& shape) {
  const Note note = note_of(mine);
  std::vector<Note> notes(static_cast<std::size_t>(engine.size()));
  gather(Operation::allocate, note.data(), notes.data(),
         {.count = note.size(), .dtype = Dtype::uint8, .shape = shape});
  std::vector<std::string> all;
  for (const Note& one : notes) all.emplace_back(one.data());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].starts_with(kFine)) continue;
    throw Error(Code::io, core::text("rank ", rank, ": ", all[rank]));
  }
  return all;
}

std::shared_ptr<const Region> Team::State::allocate(std::size_t bytes) {
  engine.check();
  const std::string shape = core::text(bytes, " B");
  // Before any rank takes memory: afterwards there is less for the others to find.
  agree(message_of([&] { require_memory(bytes, engine.size(), available_memory()); }), shape);

  std::shared_ptr<Segment> mine;
  std::string card;
  const std::string made =
      message_of([&] { card = written((mine = Segment::create(bytes, true))->address()); });
  const std::vector<std::string> cards = agree(made == kFine ? card : made, shape);

  auto region = std::make_shared<Region>();
  agree(message_of([&] {
          for (int rank = 0; rank < engine.size(); ++rank) {
            const SegmentAddress address = read_address(cards[static_cast<std::size_t>(rank)],
                                                        engine.member(rank).process.pid, bytes);
            region->segments.push_back(rank == engine.rank() ? mine : Segment::open(address, true));
            region->base.push_back(region->segments.back()->data());
          }
        }),
        shape);
  mine->close_descriptor();
  region->bytes = bytes;
  region->rank = engine.rank();
  region->number = ++allocations;
  region->team = this;
  return region;
}

SharedBuffer Team::allocate(std::size_t bytes) { return SharedBuffer(state_->allocate(bytes)); }

std::byte* SharedBuffer::data() const noexcept {
  return region_ ? region_->base[static_cast<std::size_t>(region_->rank)] : nullptr;
}

std::size_t SharedBuffer::size() const noexcept { return region_ ? region_->bytes : 0; }

}  // namespace yoke::shm
