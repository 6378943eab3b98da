#include "yoke/launch/hang_watch.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::launch {
namespace {

using namespace std::chrono_literals;
using core::CollectiveKind;
using core::CollectiveSample;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Time = core::Clock::Monotonic;

const Time kStart = Time{} + 1000s;

CollectiveSample all_reduce(std::uint64_t sequence, Time began, bool ended = false,
                            std::uint64_t bytes = 1 << 20) {
  CollectiveSample sample;
  sample.facts = {
      .kind = CollectiveKind::all_reduce, .sequence = sequence, .dtype = 6, .bytes = bytes};
  sample.began = began;
  if (ended) sample.ended = began + 1ms;
  return sample;
}

RankView view(int rank, std::vector<CollectiveSample> collectives) {
  RankView out{.rank = rank, .host = "n7", .state = 'S'};
  out.telemetry.emplace();
  out.telemetry->last_step.step = 40;
  out.telemetry->step_ended = kStart - 1s;
  out.telemetry->collectives = std::move(collectives);
  return out;
}

TEST(HangWatch, NamesTheRankThatDidNotCome) {
  HangWatch watch({.limit = 20s});
  const std::vector<RankView> ranks{view(0, {all_reduce(812, kStart)}),
                                    view(1, {all_reduce(811, kStart - 1s, true)}),
                                    view(2, {all_reduce(812, kStart + 1s)})};

  EXPECT_THAT(watch.look(ranks, kStart + 19s), IsEmpty());
  const auto reports = watch.look(ranks, kStart + 20s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].suspects, ElementsAre(1));
  EXPECT_THAT(reports[0].text,
              AllOf(HasSubstr("rank 1 did not come to all-reduce #812 (1.0 MiB)"),
                    HasSubstr("ranks 0, 2 wait for 20.0 s"), HasSubstr("after step 40"),
                    HasSubstr("its last was all-reduce #811")));
}

TEST(HangWatch, SaysItOnce) {
  HangWatch watch({.limit = 20s});
  const std::vector<RankView> ranks{view(0, {all_reduce(3, kStart)}), view(1, {})};

  EXPECT_THAT(watch.look(ranks, kStart + 21s), SizeIs(1));
  EXPECT_THAT(watch.look(ranks, kStart + 22s), IsEmpty());
}

TEST(HangWatch, DoesNotSpeakOfWorkThatGoesOn) {
  HangWatch watch({.limit = 20s});
  const std::vector<RankView> ranks{
      view(0, {all_reduce(3, kStart, true), all_reduce(4, kStart + 60s)}),
      view(1, {all_reduce(3, kStart, true)})};

  EXPECT_THAT(watch.look(ranks, kStart + 70s), IsEmpty());
}

TEST(HangWatch, NamesBothSidesOfDifferentSizesAtOnce) {
  HangWatch watch({.limit = 20s});
  const std::vector<RankView> ranks{view(0, {all_reduce(7, kStart)}),
                                    view(1, {all_reduce(7, kStart, false, 512)})};

  const auto reports = watch.look(ranks, kStart + 3s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].suspects, ElementsAre(0, 1));
  EXPECT_THAT(reports[0].text, AllOf(HasSubstr("rank 0 waits in all-reduce #7 (1.0 MiB)"),
                                     HasSubstr("rank 1 came with all-reduce #7 (512 B)")));
}

TEST(HangWatch, NamesBothSidesOfDifferentKinds) {
  HangWatch watch({.limit = 20s});
  CollectiveSample barrier = all_reduce(7, kStart);
  barrier.facts.kind = CollectiveKind::barrier;
  barrier.facts.bytes = 0;

  const auto reports =
      watch.look({view(0, {all_reduce(7, kStart)}), view(1, {barrier})}, kStart + 3s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].text, HasSubstr("rank 1 came with barrier #7"));
}

TEST(HangWatch, UnequalGathersAreNoMismatch) {
  HangWatch watch({.limit = 20s});
  CollectiveSample small = all_reduce(7, kStart, false, 10);
  CollectiveSample large = all_reduce(7, kStart, false, 20);
  small.facts.kind = large.facts.kind = CollectiveKind::all_gather;

  EXPECT_THAT(watch.look({view(0, {small}), view(1, {large})}, kStart + 3s), IsEmpty());
}

TEST(HangWatch, AllWaitingIsTheNetworksFault) {
  HangWatch watch({.limit = 20s});

  const auto reports = watch.look(
      {view(0, {all_reduce(7, kStart)}), view(1, {all_reduce(7, kStart)})}, kStart + 25s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].text, HasSubstr("all ranks have come and nothing moves"));
}

TEST(HangWatch, AStoppedProcessIsNamedAlsoWithoutTelemetry) {
  HangWatch watch({.stopped_after = 5s});
  const std::vector<RankView> ranks{{.rank = 3, .state = 'T'}};

  EXPECT_THAT(watch.look(ranks, kStart), IsEmpty());
  const auto reports = watch.look(ranks, kStart + 5s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].suspects, ElementsAre(3));
  EXPECT_THAT(reports[0].text, HasSubstr("rank 3 is stopped (SIGSTOP, or a debugger) for 5.0 s"));
}

TEST(HangWatch, ARankWithoutTelemetryIsSaidToBeUnseen) {
  HangWatch watch({.limit = 20s});

  const auto reports = watch.look({view(0, {all_reduce(7, kStart)}), {.rank = 1}}, kStart + 25s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].suspects, ElementsAre(1));
  EXPECT_THAT(reports[0].text, HasSubstr("what rank 1 does cannot be seen"));
}

TEST(HangWatch, ASmallGroupDoesNotAccuseThoseOutsideIt) {
  HangWatch watch({.limit = 20s});
  CollectiveSample inner = all_reduce(5, kStart);
  inner.facts.group = 9;

  const auto reports = watch.look({view(0, {inner}), view(1, {inner}), view(2, {})}, kStart + 25s);

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_THAT(reports[0].text, HasSubstr("of group 9"));
  EXPECT_THAT(reports[0].suspects, ElementsAre(0, 1));
}

}  // namespace
}  // namespace yoke::launch
