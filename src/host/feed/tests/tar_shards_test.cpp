#include "yoke/feed/tar_shards.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"
#include "tar_bytes.hpp"
#include "temporary_folder.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/files.hpp"
#include "yoke/feed/shard.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "0.jpg", "0.cls", "1.jpg", ...: image i holds the text "image i".
std::vector<Member> samples(int first, int end) {
  std::vector<Member> members;
  for (int i = first; i < end; ++i) {
    members.push_back({std::to_string(i) + ".jpg", "image " + std::to_string(i)});
    members.push_back({std::to_string(i) + ".cls", std::to_string(i % 3)});
  }
  return members;
}

class Tar : public ::testing::Test {
 protected:
  void SetUp() override { before_ = core::attach(console_); }
  void TearDown() override { core::attach(before_); }

  fs::path put(const std::string& name, const std::string& bytes) const {
    write_file(folder_ / name, bytes_of(bytes));
    return folder_ / name;
  }
  static std::string text_at(const EncodedImages& images, std::int64_t index) {
    std::vector<std::byte> memory;
    const auto bytes = images.read(index, memory);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] std::size_t cached() const {
    std::error_code none;
    std::size_t count = 0;
    for (fs::directory_iterator entry(folder_ / "cache/yoke/index", none), end; entry != end;
         ++entry) {
      ++count;
    }
    return count;
  }

  TemporaryFolder folder_;
  CacheElsewhere cache_{folder_ / "cache"};
  std::shared_ptr<core::RecordingConsole> console_ = std::make_shared<core::RecordingConsole>();
  std::shared_ptr<core::Console> before_;
};

TEST_F(Tar, SamplesAreReachedOneByOneInAnyOrder) {
  const auto first = put("a.tar", tar_bytes(samples(0, 3)));
  const auto second = put("b.tar", tar_bytes(samples(3, 5)));

  const TarShards shards(TarShards::find(folder_.path()));

  EXPECT_EQ(shards.size(), 5);
  EXPECT_EQ(shards.num_classes(), 3);
  for (const std::int64_t i : {4, 0, 3, 2, 1}) {
    EXPECT_EQ(text_at(shards, i), "image " + std::to_string(i));
    EXPECT_EQ(shards.label(i), i % 3);
  }
  EXPECT_THAT(shards.origin(3), AllOf(HasSubstr(second.string()), HasSubstr("key 3")));
}

TEST_F(Tar, LongNamesAndPaxPathsAreRead) {
  const std::string deep = std::string(150, 'd') + "/x.jpg";
  std::string pax = " path=" + deep + "\n";
  pax = std::to_string(pax.size() + 3) + pax;
  const auto gnu = put("gnu.tar", tar_bytes({{"././@LongLink", deep + '\0', 'L'},
                                             {deep.substr(0, 100), "gnu"},
                                             {"folder/", "", '5'}}));
  const auto posix = put("pax.tar", tar_bytes({{"PaxHeader", pax, 'x'}, {"short.jpg", "pax"}}));

  const TarShards shards({gnu, posix});

  EXPECT_EQ(text_at(shards, 0), "gnu");
  EXPECT_EQ(text_at(shards, 1), "pax");
  EXPECT_THAT(shards.origin(0), HasSubstr(std::string(150, 'd') + "/x"));
  EXPECT_THAT(shards.origin(1), HasSubstr(std::string(150, 'd') + "/x"));
  EXPECT_EQ(shards.num_classes(), 0);
}

TEST_F(Tar, B051AMemberThatStandsTwiceIsNamedWithItsShard) {
  const auto path =
      put("a.tar", tar_bytes({{"base.jpg", "1"}, {"base.json", "2"}, {"base.jpg", "3"}}));

  const Error error = error_of([&] { const TarShards shards({path}); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), AllOf(HasSubstr(path.string()), HasSubstr("base.jpg")));
}

TEST_F(Tar, B051ShardsMayUseTheSameNames) {
  const auto first = put("a.tar", tar_bytes({{"img.jpg", "1"}}));
  const auto second = put("b.tar", tar_bytes({{"img.jpg", "2"}}));

  const TarShards shards({first, second});

  EXPECT_EQ(shards.size(), 2);
  EXPECT_EQ(text_at(shards, 1), "2");
}

TEST_F(Tar, B052ASampleWhoseMembersAreApartIsRefused) {
  const auto mixed =
      put("mixed.tar", tar_bytes({{"0.jpg", "a"}, {"1.jpg", "a"}, {"0.cls", "1"}, {"1.cls", "1"}}));
  const auto sorted = put(
      "sorted.tar", tar_bytes({{"0.jpg", "a"}, {"0.cls", "1"}, {"1.jpg", "a"}, {"1.cls", "1"}}));

  const Error error = error_of([&] { const TarShards shards({mixed}); });

  EXPECT_THAT(error.message(),
              AllOf(HasSubstr(mixed.string()), HasSubstr("\"0.cls\""),
                    HasSubstr("key 0 was already finished; members of a sample must be adjacent")));
  EXPECT_EQ(TarShards({sorted}).size(), 2);
}

TEST_F(Tar, B053AShardThatWasCutShortIsRefusedWithTheByte) {
  const std::string whole = tar_bytes(samples(0, 10));
  const std::size_t member_13 =
      std::size_t{12} * 1024;  // each of the twenty has a header and a block
  const auto path = put("cut.tar", whole.substr(0, member_13 + 516));

  const Error error = error_of([&] { const TarShards shards({path}); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), AllOf(HasSubstr(path.string()), HasSubstr("at byte 12288")));
}

TEST_F(Tar, B053WholeSamplesOfACutShardAreKeptWherePolicySaysSo) {
  const std::string whole = tar_bytes(samples(0, 10));
  const auto path = put("cut.tar", whole.substr(0, std::size_t{12} * 1024 + 516));

  const TarShards shards({path}, {.damaged = DamagedShards::skip});

  EXPECT_EQ(shards.size(), 6);
  EXPECT_EQ(text_at(shards, 5), "image 5");
  EXPECT_THAT(console_->lines(), ElementsAre(HasSubstr("6 whole samples are kept")));
}

TEST_F(Tar, B053AnUnclosedWritersShardLosesItsLastSampleAloneAndAnEmptyFileIsNamed) {
  auto members = samples(0, 3);
  members.pop_back();  // 2.jpg without 2.cls
  const auto unclosed = put("unclosed.tar", tar_members(members));
  const auto empty = put("empty.tar", "");

  const TarShards shards({unclosed}, {.damaged = DamagedShards::skip});

  EXPECT_EQ(shards.size(), 2);
  EXPECT_EQ(shards.lost_samples(), 1);
  EXPECT_THAT(error_of([&] { const TarShards none({empty}); }).message(),
              AllOf(HasSubstr(empty.string()), HasSubstr("0 bytes")));
}

TEST_F(Tar, B055FewerShardsThanRanksAreSharedOutBySample) {
  const TarShards shards({put("a.tar", tar_bytes(samples(0, 10))),
                          put("b.tar", tar_bytes(samples(10, 20))),
                          put("c.tar", tar_bytes(samples(20, 24)))});
  for (const int world_size : {2, 4}) {
    std::multiset<std::string> seen;
    std::set<std::int64_t> steps;
    for (int rank = 0; rank < world_size; ++rank) {
      const Plan plan(
          {.length = shards.size(), .batch_size = 2, .rank = rank, .world_size = world_size});
      steps.insert(plan.steps());
      for (std::int64_t step = 0; step < plan.steps(); ++step) {
        for (std::int64_t row = 0; row < plan.rows(step); ++row) {
          seen.insert(text_at(shards, plan.position(step, row)));
        }
      }
    }

    EXPECT_EQ(steps.size(), 1U) << world_size;
    EXPECT_EQ(seen.size(), 24U);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 24U);
  }
}

TEST_F(Tar, TheIndexIsKeptAndMadeAnewWhenTheShardChanges) {
  const auto path = put("a.tar", tar_bytes(samples(0, 3)));
  EXPECT_EQ(TarShards({path}).size(), 3);
  EXPECT_EQ(cached(), 1U);
  EXPECT_EQ(TarShards({path}).fingerprint(), TarShards({path}, {.cache = false}).fingerprint());

  put("a.tar", tar_bytes(samples(0, 7)));

  EXPECT_EQ(TarShards({path}).size(), 7);
  EXPECT_EQ(cached(), 1U);
}

TEST_F(Tar, ADamagedIndexIsMadeAnew) {
  const auto path = put("a.tar", tar_bytes(samples(0, 3)));
  EXPECT_EQ(TarShards({path}).size(), 3);
  for (const auto& entry : fs::directory_iterator(folder_ / "cache/yoke/index")) {
    std::string bytes = core::read_file(entry.path());
    bytes[bytes.size() / 2] ^= 1;
    write_file(entry.path(), bytes_of(bytes));
  }

  EXPECT_EQ(text_at(TarShards({path}), 2), "image 2");
}

TEST_F(Tar, PackedArchivesAndSamplesWithoutImagesAreRefused) {
  const auto packed = put("a.tar", std::string("\x1F\x8B") + std::string(600, 'x'));
  const auto text = put("b.tar", tar_bytes({{"1.txt", "words"}}));
  const auto other = put("c.tar", std::string(2000, 'x'));

  EXPECT_THAT(error_of([&] { const TarShards none({packed}); }).message(), HasSubstr("gzip"));
  EXPECT_THAT(error_of([&] { const TarShards none({text}); }).message(),
              AllOf(HasSubstr("\"1\" has no image"), HasSubstr("txt")));
  EXPECT_THAT(error_of([&] { const TarShards none({other}); }).message(),
              HasSubstr("no tar header"));
}

TEST_F(Tar, ASampleWithoutALabelAmongOthersIsRefused) {
  auto members = samples(0, 2);
  members.push_back({"9.jpg", "image"});

  const Error error = error_of([&] { const TarShards none({put("a.tar", tar_bytes(members))}); });

  EXPECT_THAT(error.message(), HasSubstr("1 of 3 samples have no label"));
}

}  // namespace
}  // namespace yoke::feed
