#include "yoke/feed/pixels.hpp"

#include <cstdint>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {

void to_floats(std::span<const std::byte> pixels, const Normalise& normalise,
               std::span<float> out) {
  if (!(normalise.std > 0)) {
    throw Error(Code::invalid_argument,
                core::text("normalise pixels: the standard deviation is ", normalise.std));
  }
  const float scale = 1.0F / (255.0F * normalise.std);
  const float offset = -normalise.mean / normalise.std;
  const auto* from = reinterpret_cast<const std::uint8_t*>(pixels.data());
  float* to = out.data();
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    to[i] = static_cast<float>(from[i]) * scale + offset;
  }
}

}  // namespace yoke::feed
