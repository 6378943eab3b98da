#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine.hpp"

namespace yoke::shm {

/// Messages between two ranks: a header and the elements through the pair's mailbox, a ring of
/// bytes.
class Mail {
 public:
  explicit Mail(Engine& engine);

  void send(const void* data, const Elements& elements, int to);
  void receive(void* data, const Elements& elements, int from);

 private:
  struct Stream;
  void move(const Stream& stream, std::byte* data, std::size_t bytes);

  Engine& engine_;
  std::vector<std::uint64_t> sent_;      // [ranks] messages
  std::vector<std::uint64_t> received_;  // [ranks]
};

}  // namespace yoke::shm
