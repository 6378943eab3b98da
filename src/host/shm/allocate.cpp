#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <utility>

#include "call.hpp"
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

}  // namespace

// Every rank's words, in rank order; if one is not fine, the same error on every rank.
std::vector<std::string> Team::State::agree(const std::string& mine, const std::string& shape,
                                            Code code) {
  const Note note = note_of(mine);
  std::vector<Note> notes(static_cast<std::size_t>(engine.size()));
  gather(Operation::allocate, note.data(), notes.data(),
         {.count = note.size(), .dtype = Dtype::uint8, .shape = shape});
  std::vector<std::string> all;
  for (const Note& one : notes) all.emplace_back(one.data());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].starts_with(kFine)) continue;
    throw Error(code, core::text("rank ", rank, ": ", all[rank]));
  }
  return all;
}

std::shared_ptr<const Region> Team::State::allocate(std::size_t bytes) {
  engine.check();
  const std::string shape = core::bytes_text(bytes) + core::text(" (", bytes, " B)");
  // No error may leave before the ranks have agreed: the others would wait.
  auto region = std::make_shared<Region>();
  std::shared_ptr<Segment> mine;
  std::string words;
  try {
    mine = Segment::create(bytes, /*populate=*/true);
    words = written(mine->address());
  } catch (const Error& error) {
    words = error.message();
  }
  const std::vector<std::string> cards = agree(words, shape, Code::io);

  words = kFine;
  try {
    for (int rank = 0; rank < engine.size(); ++rank) {
      const SegmentAddress address = read_address(cards[static_cast<std::size_t>(rank)],
                                                  engine.member(rank).process.pid, bytes);
      region->segments.push_back(rank == engine.rank() ? mine : Segment::open(address, true));
      region->base.push_back(region->segments.back()->data());
    }
  } catch (const Error& error) {
    words = error.message();
  }
  agree(words, shape, Code::io);
  mine->close_descriptor();
  region->bytes = bytes;
  region->rank = engine.rank();
  region->number = ++allocations;
  return region;
}

SharedBuffer Team::allocate(std::size_t bytes) { return SharedBuffer(state_->allocate(bytes)); }

std::byte* SharedBuffer::data() const noexcept {
  return region_ ? region_->base[static_cast<std::size_t>(region_->rank)] : nullptr;
}

std::size_t SharedBuffer::size() const noexcept { return region_ ? region_->bytes : 0; }

}  // namespace yoke::shm
