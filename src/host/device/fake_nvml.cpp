#include "yoke/device/fake_nvml.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::device {

FakeNvml::FakeNvml(std::vector<Card> cards) : cards_(std::move(cards)) {}

std::vector<Card> FakeNvml::cards(int count) {
  std::vector<Card> cards;
  for (int i = 0; i < count; ++i) {
    std::array<char, 64> uuid{};
    std::array<char, 64> bus{};
    std::snprintf(uuid.data(), uuid.size(), "GPU-%08x-0000-0000-0000-%012x", i, i);
    std::snprintf(bus.data(), bus.size(), "00000000:%02X:00.0", 0x10 + i);
    cards.push_back({.index = i,
                     .uuid = uuid.data(),
                     .name = "Fake card",
                     .bus_id = bus.data(),
                     .memory_bytes = std::uint64_t{141} << 30});
  }
  return cards;
}

void FakeNvml::fail(int index, std::string reason) { failures_[index] = std::move(reason); }

int FakeNvml::count() const { return static_cast<int>(cards_.size()); }

Card FakeNvml::card(int index) const {
  if (const auto failure = failures_.find(index); failure != failures_.end()) {
    throw core::Error(core::Code::cuda, core::text("read card ", index, ": ", failure->second));
  }
  if (index < 0 || index >= count()) {
    throw core::Error(core::Code::cuda,
                      core::text("read card ", index, ": only ", count(), " cards"));
  }
  return cards_[static_cast<std::size_t>(index)];
}

}  // namespace yoke::device
