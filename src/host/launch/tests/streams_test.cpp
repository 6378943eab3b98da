#include "yoke/launch/streams.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rank_output.hpp"
#include "yoke/core/error.hpp"

namespace yoke::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StreamChoice, ReadsTorchrunsForms) {
  const StreamChoice all = stream_choice("3", "--tee");
  const StreamChoice some = stream_choice("0:1,1:2,2:3,3:0", "--tee");

  EXPECT_TRUE(all.has(7, Streams::out));
  EXPECT_TRUE(all.has(7, Streams::err));
  EXPECT_TRUE(some.has(0, Streams::out));
  EXPECT_FALSE(some.has(0, Streams::err));
  EXPECT_TRUE(some.has(1, Streams::err));
  EXPECT_TRUE(some.has(2, Streams::out));
  EXPECT_FALSE(some.has(3, Streams::out));
  EXPECT_FALSE(some.has(4, Streams::out));
  EXPECT_TRUE(stream_choice("0", "--tee").empty());
}

TEST(StreamChoice, QuotesWhatIsNone) {
  for (const char* value : {"", "4", "-1", "out", "0:", "0:4", ":1", "0:1;1:2", "0:1,", "x:1"}) {
    try {
      static_cast<void>(stream_choice(value, "--tee"));
      ADD_FAILURE() << value << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.message(), HasSubstr(std::string("'") + value + "'"));
    }
  }
}

TEST(RankSet, ReadsRanksAndRanges) {
  EXPECT_THAT(rank_set("0,3,8-10", "--show"), ElementsAre(0, 3, 8, 9, 10));
  for (const char* value : {"", "a", "1-", "3-1", "-1", "1,,2"})
    EXPECT_THROW(static_cast<void>(rank_set(value, "--show")), Error) << value;
}

TEST(LinePrefix, NamesTheHostWhereThereAreSeveral) {
  JobFacts job{.ranks = 2, .host = "n7"};

  EXPECT_EQ(line_prefix(job, 1, {}), "[r1] ");
  job.placement = {.first_rank = 8, .world_size = 16, .node_rank = 1, .node_count = 2};
  EXPECT_EQ(line_prefix(job, 1, {}), "[n7 r9] ");
  EXPECT_EQ(line_prefix(job, 1,
                        {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
                          "[${role_name}-${local_rank}/${rank}]:"}}),
            "[default-1/9]:");
}

}  // namespace
}  // namespace yoke::launch
