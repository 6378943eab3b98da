#include "yoke/core/descriptor.hpp"

#include <fcntl.h>

#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace yoke::core {
namespace {

static_assert(!std::is_copy_constructible_v<Descriptor>);

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, IsClosedOnTheWayOut) {
  const int number = open_null();

  {
    const Descriptor file(number);
    EXPECT_TRUE(file.is_open());
    EXPECT_TRUE(is_open(number));
  }

  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, OfAnOpenThatFailedIsNotOpen) {
  EXPECT_FALSE(Descriptor(-1).is_open());
  EXPECT_FALSE(Descriptor().is_open());
}

TEST(Descriptor, IsMovedWithItsNumber) {
  Descriptor from(open_null());
  const int number = from.get();

  Descriptor into;
  into = std::move(from);

  EXPECT_EQ(into.get(), number);
  EXPECT_TRUE(is_open(number));
  into.close();
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(into.is_open());
}

TEST(Descriptor, ThatWasReleasedStaysOpen) {
  int number = -1;
  {
    Descriptor file(open_null());
    number = file.release();
  }

  EXPECT_TRUE(is_open(number));
  ::close(number);
}

}  // namespace
}  // namespace yoke::core
