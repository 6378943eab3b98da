#include "mail.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "call.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

// What precedes a message's elements.
struct Header {
  Dtype dtype{Dtype::uint8};
  std::uint32_t shape_bytes{0};
  std::uint64_t count{0};
  std::array<char, kShapeBytes> shape{};
};

Header header_of(const Elements& elements) {
  Header header;
  header.dtype = elements.dtype;
  header.count = elements.count;
  header.shape_bytes = static_cast<std::uint32_t>(std::min(elements.shape.size(), kShapeBytes));
  std::copy_n(elements.shape.begin(), header.shape_bytes, header.shape.begin());
  return header;
}

bool operator==(const Header& one, const Header& other) {
  return one.dtype == other.dtype && one.count == other.count && one.shape == other.shape;
}

std::string text_of(const Header& header) {
  const std::string_view shape(header.shape.data(), header.shape_bytes);
  if (shape.empty()) return core::text(header.count, ' ', name(header.dtype));
  return core::text(shape, ' ', name(header.dtype));
}

// Moves as much as now can be, and returns how much that was.
std::size_t push(Mailbox& box, const std::byte* data, std::size_t bytes) {
  const std::uint64_t written = box.written.load(std::memory_order_relaxed);
  const auto room = kMailBytes - static_cast<std::size_t>(written - box.taken.load());
  const std::size_t now = std::min(room, bytes);
  const auto at = static_cast<std::size_t>(written % kMailBytes);
  const std::size_t first = std::min(now, kMailBytes - at);
  std::memcpy(box.bytes.data() + at, data, first);
  std::memcpy(box.bytes.data(), data + first, now - first);
  if (now > 0) box.written.store(written + now);
  return now;
}

std::size_t pull(Mailbox& box, std::byte* data, std::size_t bytes) {
  const std::uint64_t taken = box.taken.load(std::memory_order_relaxed);
  const auto there = static_cast<std::size_t>(box.written.load() - taken);
  const std::size_t now = std::min(there, bytes);
  const auto at = static_cast<std::size_t>(taken % kMailBytes);
  const std::size_t first = std::min(now, kMailBytes - at);
  std::memcpy(data, box.bytes.data() + at, first);
  std::memcpy(data + first, box.bytes.data(), now - first);
  if (now > 0) box.taken.store(taken + now);
  return now;
}

}  // namespace

struct Mail::Stream {
  Mailbox& box;
  int peer;
  bool out;
  std::uint64_t number;
  std::string what;
};

Mail::Mail(Engine& engine)
    : engine_(engine),
      sent_(static_cast<std::size_t>(engine.size())),
      received_(static_cast<std::size_t>(engine.size())) {}

void Mail::move(const Stream& stream, std::byte* data, std::size_t bytes) {
  std::size_t moved = 0;
  engine_.wait_until({.over =
                          [&] {
                            const std::size_t now =
                                stream.out ? push(stream.box, data + moved, bytes - moved)
                                           : pull(stream.box, data + moved, bytes - moved);
                            moved += now;
                            if (now > 0) engine_.ring(stream.peer);
                            return moved == bytes;
                          },
                      .missing = [&] { return std::vector<int>{stream.peer}; },
                      .what =
                          [&] {
                            return core::text(stream.out ? "send #" : "receive #", stream.number,
                                              stream.out ? " to rank " : " from rank ", stream.peer,
                                              " (", stream.what, ")");
                          }});
}

void Mail::send(const void* data, const Elements& elements, int to) {
  engine_.check();
  const auto peer = static_cast<std::size_t>(to);
  Header header = header_of(elements);
  const Stream stream{engine_.member(engine_.rank()).mailboxes[peer], to, true, ++sent_[peer],
                      text_of(header)};
  move(stream, reinterpret_cast<std::byte*>(&header), sizeof(header));
  // push() only reads.
  move(stream, static_cast<std::byte*>(const_cast<void*>(data)),
       elements.count * size_of(elements.dtype));
}

void Mail::receive(void* data, const Elements& elements, int from) {
  engine_.check();
  const auto peer = static_cast<std::size_t>(from);
  const Header expected = header_of(elements);
  const Stream stream{engine_.member(from).mailboxes[static_cast<std::size_t>(engine_.rank())],
                      from, false, ++received_[peer], text_of(expected)};
  Header header;
  move(stream, reinterpret_cast<std::byte*>(&header), sizeof(header));
  if (!(header == expected)) {
    engine_.fail(
        Error(Code::invalid_argument,
              core::text("rank ", engine_.rank(), ": receive #", stream.number, " from rank ", from,
                         ": it sent ", text_of(header), ", not ", text_of(expected)),
              "let both sides name the same elements"));
  }
  move(stream, static_cast<std::byte*>(data), elements.count * size_of(elements.dtype));
}

}  // namespace yoke::shm
