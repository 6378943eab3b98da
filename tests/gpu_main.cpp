// main() of the tests that need cards: skipped, with the reason, where there are fewer than
// YOKE_TEST_CARDS. Touches no card itself, so a test may fork.

#include <cstdio>

#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/device/visible.hpp"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  ::testing::InitGoogleTest(&argc, argv);
  const int cards = yoke::device::visible_gpu_count(yoke::core::environment());
  if (cards < YOKE_TEST_CARDS) {
    std::printf("skipped: %d cards here, %d needed\n", cards, YOKE_TEST_CARDS);
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
