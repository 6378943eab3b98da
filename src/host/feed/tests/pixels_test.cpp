#include "yoke/feed/pixels.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::feed {
namespace {

TEST(Pixels, BecomeFloatsInUnitsOfTheDeviationForAnyCount) {
  for (const std::size_t count : {0, 1, 3, 16, 17, 784}) {
    std::vector<std::byte> pixels(count);
    for (std::size_t i = 0; i < count; ++i) pixels[i] = static_cast<std::byte>(i * 7);
    std::vector<float> floats(count, 99.0F);

    to_floats(pixels, {.mean = 0.25F, .std = 0.5F}, floats);

    for (std::size_t i = 0; i < count; ++i) {
      const double expected = (std::to_integer<int>(pixels[i]) / 255.0 - 0.25) / 0.5;
      EXPECT_NEAR(floats[i], expected, 1e-6) << i;  // three roundings of numbers below 2
    }
  }
}

TEST(Pixels, RefuseADeviationOfZero) {
  EXPECT_THROW(to_floats({}, {.mean = 0, .std = 0}, {}), Error);
  EXPECT_THROW(to_floats({}, {.mean = 0, .std = std::nanf("")}, {}), Error);
}

}  // namespace
}  // namespace yoke::feed
