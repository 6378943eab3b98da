#include "yoke/feed/classes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"

namespace yoke::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Classes, B043AreNumberedByTheByteOrderOfTheirNames) {
  const Classes classes({"1", "2", "10"});

  EXPECT_THAT(classes.names(), ElementsAre("1", "10", "2"));
  EXPECT_THAT(classes.match({"2", "1", "10"}).labels, ElementsAre(2, 0, 1));
}

TEST(Classes, B043KeepTheirNumbersInASplitThatLacksOne) {
  const Classes classes({"0", "90", "180", "270"});

  const Classes::Match match = classes.match({"0", "270", "90"});

  EXPECT_THAT(match.labels, ElementsAre(0, 2, 3));
  EXPECT_THAT(match.missing, ElementsAre("180"));
}

TEST(Classes, B043RefuseOneThatTrainingDoesNotHave) {
  const Classes classes({"cat", "dog"});

  const Error error = error_of([&] { (void)classes.match({"cat", "dogs"}); });

  EXPECT_THAT(error.message(), HasSubstr("\"dogs\" is not one of the 2 classes of training"));
  EXPECT_EQ(error.hint(), "did you mean dog?");
}

TEST(Classes, MissNothingWhereAllAreThere) {
  EXPECT_THAT(Classes({"b", "a"}).match({"a", "b"}).missing, IsEmpty());
}

TEST(Classes, RefuseANameThatStandsTwice) { EXPECT_THROW(Classes({"a", "b", "a"}), Error); }

}  // namespace
}  // namespace yoke::feed
