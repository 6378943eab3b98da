// yoke data as its user meets it.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/feed/encode.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Data : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-data-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    for (int i = 0; i < 6; ++i) put(i % 2 == 0 ? "in/cat" : "in/dog", i, 400 + i);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& where, int number, int width) const {
    feed::Image image(width, 300);
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        for (int channel = 0; channel < 3; ++channel) {
          image.row(y)[4 * x + channel] = static_cast<std::uint8_t>(x * (channel + 1) + y * number);
        }
      }
    }
    const auto jpeg = feed::encode_jpeg(image);
    fs::create_directories(folder_ / where);
    core::write_atomically(folder_ / where / (std::to_string(number) + ".jpg"),
                           {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
  }

  [[nodiscard]] ChildResult data(std::vector<std::string> words) const {
    words.insert(words.begin(), {YOKE_PROGRAM, "data"});
    core::EnvironmentMap variables = core::environment();
    variables["XDG_CACHE_HOME"] = (folder_ / "cache").string();
    return core::run_child({.command = std::move(words), .variables = variables, .limit = 60s});
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  fs::path folder_;
};

TEST_F(Data, HelpBeginsWithTheUsage) {
  const ChildResult result = data({"--help"});

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(StartsWith("usage: yoke data inspect"), HasSubstr("--short-side")));
}

TEST_F(Data, InspectSaysWhatAFolderIs) {
  const ChildResult result = data({"inspect", path("in"), "--json"});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  const core::Json report = core::parse_json(result.out, "yoke data");
  EXPECT_EQ(report["kind"], "image folder");
  EXPECT_EQ(report["samples"], 6);
  EXPECT_EQ(report["classes"], 2);
  EXPECT_EQ(report["formats"]["JPEG"], 6);
  EXPECT_EQ(report["width"]["most"], 405);
}

TEST_F(Data, VerifyListsBrokenImagesWithPathAndReason) {
  fs::resize_file(folder_ / "in/cat/2.jpg", fs::file_size(folder_ / "in/cat/2.jpg") - 54);

  const ChildResult result = data({"verify", path("in")});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("broken          1\n"), HasSubstr(path("in/cat/2.jpg")),
                                HasSubstr("the file ends too early")));
}

TEST_F(Data, PackMakesShardsThatInspectKnows) {
  const ChildResult packed =
      data({"pack", path("in"), path("out"), "--short-side", "100", "--shard-samples", "4"});
  const ChildResult again = data(
      {"pack", path("in"), path("out"), "--short-side", "100", "--shard-samples", "4", "--json"});
  const ChildResult result = data({"inspect", path("out"), "--json"});

  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_EQ(core::parse_json(again.out, "yoke data")["resumed"], 6);
  const core::Json report = core::parse_json(result.out, "yoke data");
  EXPECT_EQ(report["kind"], "2 tar shards");
  EXPECT_EQ(report["height"]["most"], 100);
  EXPECT_EQ(report["classes"], 2);
}

TEST_F(Data, PackMakesAnLmdb) {
  const ChildResult packed = data({"pack", path("in"), path("out"), "--format=lmdb"});
  const ChildResult result = data({"verify", path("out"), "--json"});

  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_EQ(core::parse_json(result.out, "yoke data")["kind"], "LMDB");
  EXPECT_EQ(core::parse_json(result.out, "yoke data")["samples"], 6);
}

TEST_F(Data, BenchNamesTheStageThatLimits) {
  const ChildResult result =
      data({"bench", path("in"), "--seconds", "1", "--workers", "2", "--json"});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  const core::Json report = core::parse_json(result.out, "yoke data");
  EXPECT_EQ(report["limit"], "decoding");
  EXPECT_GT(report["rows_per_s_one_core"].get<double>(), 0);
}

TEST_F(Data, BadInputIsOneLineWithThePath) {
  fs::create_directories(folder_ / "empty");
  core::write_atomically(folder_ / "words.txt", "no images");
  core::write_atomically(folder_ / "cut.tar", std::string(700, 'x'));
  for (const char* name : {"nowhere", "empty", "words.txt", "cut.tar", "in/cat"}) {
    const ChildResult result = data({"inspect", path(name)});

    EXPECT_NE(result.exit_code, 0) << name;
    EXPECT_THAT(result.err, AllOf(StartsWith("error: "), HasSubstr(path(name)))) << name;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
}

TEST_F(Data, WordsThatAreWrongAreQuoted) {
  const ChildResult unknown = data({"inspekt", path("in")});
  const ChildResult option = data({"inspect", path("in"), "--quality", "3"});
  const ChildResult value = data({"pack", path("in"), path("out"), "--quality", "300"});

  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean inspect?"));
  EXPECT_THAT(option.err, HasSubstr("inspect has no option --quality"));
  EXPECT_THAT(value.err, HasSubstr("--quality '300'"));
}

}  // namespace
}  // namespace yoke::cli
