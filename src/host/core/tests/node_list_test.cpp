#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"

namespace yoke::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& list) {
  try {
    static_cast<void>(expand_node_list(list));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  ADD_FAILURE() << list << " was taken";
  return {};
}

TEST(NodeList, B036ListsAreReadAsSlurmMeansThem) {
  EXPECT_THAT(expand_node_list("linux[1,2]"), ElementsAre("linux1", "linux2"));
  EXPECT_THAT(expand_node_list("nodeA,nodeB[001,003],nodeC"),
              ElementsAre("nodeA", "nodeB001", "nodeB003", "nodeC"));
  EXPECT_THAT(expand_node_list("b04-[09-10]"), ElementsAre("b04-09", "b04-10"));
  EXPECT_THAT(expand_node_list("n"), ElementsAre("n"));
}

TEST(NodeList, B036NamesOfOnePrefixAndSeveralWidthsStayApart) {
  const std::vector<std::string> hosts =
      expand_node_list("foo003,foo0[10-20],foo[103-104],foo[10,12-14],foo-m11-16");

  EXPECT_THAT(hosts,
              ElementsAre("foo003", "foo010", "foo011", "foo012", "foo013", "foo014", "foo015",
                          "foo016", "foo017", "foo018", "foo019", "foo020", "foo103", "foo104",
                          "foo10", "foo12", "foo13", "foo14", "foo-m11-16"));
}

TEST(NodeList, B036AListThatDoesNotCloseIsQuoted) {
  EXPECT_THAT(refusal("bad[1-"), HasSubstr("'bad[1-'"));
  EXPECT_THAT(refusal("bad[1-3"), HasSubstr("does not close"));
  EXPECT_THAT(refusal("bad1-3]"), HasSubstr("was not opened"));
  EXPECT_THAT(refusal("bad[[1]]"), HasSubstr("inside another"));
}

TEST(NodeList, WhatIsNoListIsRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("an empty name"));
  EXPECT_THAT(refusal("a,,b"), HasSubstr("an empty name"));
  EXPECT_THAT(refusal("a[]"), HasSubstr("no range"));
  EXPECT_THAT(refusal("a[x]"), HasSubstr("'x' is no range"));
  EXPECT_THAT(refusal("a[3-1]"), HasSubstr("runs backwards"));
  EXPECT_THAT(refusal("a[1-99999999]"), HasSubstr("longer than"));
  EXPECT_THAT(refusal("a[0-9999][0-9999]"), HasSubstr("more hosts"));
}

TEST(NodeList, BracketsMayStandAnywhere) {
  EXPECT_THAT(expand_node_list("r[1-2]n[0-1].lan"),
              ElementsAre("r1n0.lan", "r1n1.lan", "r2n0.lan", "r2n1.lan"));
}

TEST(TaskList, RepeatsAreCounted) {
  EXPECT_EQ(tasks_of_node("4(x2),3", 0), 4);
  EXPECT_EQ(tasks_of_node("4(x2),3", 1), 4);
  EXPECT_EQ(tasks_of_node("4(x2),3", 2), 3);
  EXPECT_EQ(tasks_of_node("7", 0), 7);
}

TEST(TaskList, ANodeThatIsNotInItAndABrokenTextAreRefused) {
  EXPECT_THROW(static_cast<void>(tasks_of_node("4(x2)", 2)), Error);
  for (const char* list : {"", "x", "4(x2", "4(x)", "0", "4(x0)"})
    EXPECT_THROW(static_cast<void>(tasks_of_node(list, 0)), Error) << list;
}

}  // namespace
}  // namespace yoke::core
