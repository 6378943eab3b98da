// yoke checkpoint as its user meets it.

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/archive/archive.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-checkpoint-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    save(3, 1.0F);
    save(6, 2.0F);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::vector<archive::NamedTensor> tensors(float value) {
    const auto owner = std::make_shared<const std::vector<float>>(100, value);
    return {{"module.w", archive::contiguous_tensor(archive::Dtype::float32, {100},
                                                    std::as_bytes(std::span(*owner)), owner)}};
  }

  void save(int step, float value) const {
    archive::UnsealedFolder next(path(step));
    archive::write_safetensors(next.path() / "model.safetensors", tensors(value));
    next.seal({{"step", step}, {"ranks", 2}});
  }
  [[nodiscard]] fs::path path(int step) const {
    return folder_ / "run/checkpoints" / ("step-00000000000" + std::to_string(step));
  }
  [[nodiscard]] fs::path file(const std::string& name) const { return folder_ / name; }

  static ChildResult run(std::vector<std::string> words) {
    words.insert(words.begin(), {YOKE_PROGRAM, "checkpoint"});
    return core::run_child({.command = std::move(words)});
  }

  void damage(int step) const {
    std::string bytes = core::read_file(path(step) / "model.safetensors");
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    core::write_atomically(path(step) / "model.safetensors", bytes);
  }

  fs::path folder_;
};

TEST_F(Checkpoint, LsShowsTheNewestFirst) {
  const ChildResult result = run({"ls", file("run").string(), "--json"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const core::Json all = core::parse_json(result.out, "stdout")["checkpoints"];
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["step"], 6);
  EXPECT_EQ(all[1]["ranks"], 2);
}

TEST_F(Checkpoint, VerifyFindsOneBit) {
  EXPECT_EQ(run({"verify", file("run").string()}).exit_code, 0);
  damage(3);

  const ChildResult result = run({"verify", file("run").string()});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("step-000000000006  whole  step 6"),
                    HasSubstr("step-000000000003  damaged: "), HasSubstr("its bytes changed")));
}

TEST_F(Checkpoint, AverageOfTwoWithoutTheirPrefix) {
  const ChildResult result =
      run({"average", path(3).string(), path(6).string(), file("mean.pt").string()});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("prefixes taken off: module."));
  const archive::Weights mean = archive::read_weights(file("mean.pt"));
  ASSERT_EQ(mean.tensors.size(), 1U);
  EXPECT_EQ(mean.tensors[0].name, "w");
  float first = 0;
  std::memcpy(&first, archive::row_major_bytes(mean.tensors[0].tensor).data(), sizeof first);
  EXPECT_EQ(first, 1.5F);
}

TEST_F(Checkpoint, ConvertAndShow) {
  ASSERT_EQ(run({"convert", path(6).string(), file("w.pt").string()}).exit_code, 0);

  const ChildResult shown = run({"show", file("w.pt").string()});

  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, AllOf(HasSubstr("state_dict of PyTorch, 1 tensors, 400 B"),
                               HasSubstr("w  float32 [100]")));
}

TEST_F(Checkpoint, WhatCannotBeIsOneMessage) {
  for (const auto& [words, code, part] :
       {std::tuple{std::vector<std::string>{"list"}, 2, "unknown"},
        std::tuple{std::vector<std::string>{"ls", file("nowhere").string()}, 2, "no checkpoint in"},
        std::tuple{std::vector<std::string>{"convert", path(3).string()}, 2, "1 paths"},
        std::tuple{std::vector<std::string>{"convert", path(3).string(), file("w.bin").string()}, 2,
                   "neither .safetensors nor .pt"}}) {
    const ChildResult result = run(words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace yoke::cli
