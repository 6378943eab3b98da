// yoke image as its user meets it: the linter's words and files, and programs in the sandbox.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> command(std::vector<std::string> words) {
  words.insert(words.begin(), {YOKE_PROGRAM, "image"});
  return words;
}

ChildResult image(const std::vector<std::string>& words, const std::string& input = {}) {
  return core::run_child({.command = command(words), .input = input, .limit = 60s});
}

/// A folder of its own for each test.
class Image : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-image-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path;
  }

  fs::path folder_;
};

constexpr const char* kTorn =
    "FROM nvidia/cuda:11.8-devel-ubuntu20.04\nRUN pip3 install torch==2.9.0+cu118 "
    "torchvision==0.14.0+cu118\n";

TEST_F(Image, LintPrintsJsonWithEightFaultsAndOneThatIsNone) {
  const ChildResult result = image({"lint", file("Dockerfile", kTorn), "--json"});

  const core::Json findings = core::parse_json(result.out, "stdout")["findings"];
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(findings.size(), 9u);
  int ok = 0;
  for (const core::Json& finding : findings) {
    ok += finding["severity"] == "ok" ? 1 : 0;
    EXPECT_TRUE(finding["line"].is_number_integer() && finding["reason"].is_string() &&
                finding["fix"].is_string());
  }
  EXPECT_EQ(ok, 1);
}

TEST_F(Image, LintWritesTheTwoCorrectedFilesAndTheyAreClean) {
  const std::string name = file("Dockerfile", kTorn);

  const ChildResult result = image({"lint", name, "--fix"});

  EXPECT_THAT(result.out, AllOf(HasSubstr("wrote " + name + ".keep-torch"),
                                HasSubstr("wrote " + name + ".keep-cuda")));
  EXPECT_EQ(core::read_file(name), kTorn);
  const ChildResult again = image({"lint", name + ".keep-torch", name + ".keep-cuda"});
  EXPECT_EQ(again.exit_code, 0) << again.out;
}

TEST_F(Image, LintCorrectsARequirementsFile) {
  const ChildResult result =
      image({"lint", file("requirements.txt", "torch==2.9.1\ntorchvision==0.22.1\n"), "--fix"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(core::read_file(folder_ / "requirements.fixed.txt"),
            "torch==2.9.1\ntorchvision==0.24.1\n");
}

TEST_F(Image, LintsUsageErrorsEndWithTwo) {
  EXPECT_EQ(image({"lint"}).exit_code, 2);
  EXPECT_EQ(image({"lint", (folder_ / "none").string()}).exit_code, 2);
  EXPECT_EQ(image({"lint", "--fxi", "a"}).exit_code, 2);
  EXPECT_EQ(image({"lint", file("Dockerfile", "FROM python:3.12\n")}).exit_code, 0);
}

/// A root folder with a shell of this machine and the libraries that it needs.
class ImageRun : public Image {
 protected:
  void SetUp() override {
    Image::SetUp();
    const core::EnvironmentMap variables = core::environment();
    if (!core::find_program("bwrap", variables) || !core::find_program("ldd", variables)) {
      GTEST_SKIP() << "no bwrap here: install bubblewrap";
    }
    for (const char* program : {"sh", "cat", "sleep"}) add(*core::find_program(program, variables));
    fs::create_directories(root() / "etc");
    const ChildResult probe = run({"sh", "-c", "true"});
    if (probe.exit_code == 125) GTEST_SKIP() << "no sandbox here: " << probe.err;
  }

  [[nodiscard]] fs::path root() const { return folder_ / "root"; }

  void add(const std::string& program) {
    copy(program, "/bin/" + fs::path(program).filename().string());
    const ChildResult libraries = core::run_child({.command = {"ldd", program}, .limit = 10s});
    for (const std::string& line : core::split(libraries.out, '\n')) {
      const std::size_t slash = line.find('/');
      if (slash == std::string::npos) continue;
      const std::string path = line.substr(slash, line.find(' ', slash) - slash);
      copy(path, path);
    }
  }

  void copy(const std::string& from, const std::string& to) const {
    const fs::path target = root() / to.substr(1);
    fs::create_directories(target.parent_path());
    fs::copy_file(fs::canonical(from), target, fs::copy_options::skip_existing);
  }

  [[nodiscard]] ChildResult run(const std::vector<std::string>& program,
                                std::vector<std::string> options = {},
                                const std::string& input = {}) const {
    std::vector<std::string> words{"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {root().string(), "--"});
    words.insert(words.end(), program.begin(), program.end());
    return image(words, input);
  }
};

TEST_F(ImageRun, PassesTheExitCodeOn) {
  EXPECT_EQ(run({"sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_EQ(run({"no-such-program"}).exit_code, 127);
  EXPECT_EQ(run({"/etc"}).exit_code, 126);
  EXPECT_EQ(image({"run", (folder_ / "nothing").string(), "true"}).exit_code, 125);
}

TEST_F(ImageRun, LeavesNothingInTheImage) {
  const ChildResult result = run({"sh", "-c", "echo a > /new && cat /new"});

  EXPECT_EQ(result.out, "a\n") << result.err;
  EXPECT_FALSE(fs::exists(root() / "new"));
  EXPECT_FALSE(fs::exists(root() / "workspace"));
  EXPECT_EQ(run({"sh", "-c", "echo a > /new"}, {"--writable"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(root() / "new"));
}

TEST_F(ImageRun, TakesDockersShortOptions) {
  const std::string data = file("data/f", "words");
  file("env", "B=2\n# c\n");

  const ChildResult result =
      run({"sh", "-c", "cat; cat f; echo $A$B; echo x > f"},
          {"--rm", "-i", "-v", fs::path(data).parent_path().string() + ":/data:ro", "-w/data", "-e",
           "A=1", "--env-file", (folder_ / "env").string(), "--shm-size", "64m", "--name", "box"},
          "input ");

  EXPECT_EQ(result.out, "input words12\n") << result.err;
  EXPECT_NE(result.exit_code, 0);  // the volume is read-only
}

TEST_F(ImageRun, ASignalReachesTheProgramWhichSaves) {
  core::Child child(
      {.command =
           command({"run", root().string(), "--", "sh", "-c",
                    "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.05; done"}),
       .limit = 30s});
  ASSERT_TRUE(child.wait_for("ready", 20s));

  child.signal(SIGTERM);
  const ChildResult result = child.wait();

  EXPECT_THAT(result.out, HasSubstr("saved"));
  EXPECT_EQ(result.exit_code, 3);
}

TEST_F(ImageRun, YokeLaunchStartsItsRanksInIt) {
  add(YOKE_PROGRAM);
  core::write_atomically(root() / "etc" / "mark", "inside\n");

  const ChildResult result = core::run_child(
      {.command = {YOKE_PROGRAM, "launch", "--cpu", "--ranks", "2", "--grace", "1", "--image",
                   root().string(), "--", "sh", "-c",
                   "cat /etc/mark; echo rank $RANK of $WORLD_SIZE; test $RANK = 0 || exit 3"},
       .limit = 60s});

  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("inside\n"), HasSubstr("rank 0 of 2\n"), HasSubstr("rank 1 of 2\n")));
  EXPECT_THAT(result.err, HasSubstr("rank 1"));
}

TEST_F(Image, RenderedInTwoFoldersTheFilesAreTheSame) {
  const std::vector<std::string> words{"render", "v2.11", "--cuda", "13.0", "--without", "yoke"};
  for (const char* name : {"a", "b"}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--output", (folder_ / name).string()});
    const ChildResult result = image(all);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  const ChildResult difference = core::run_child(
      {.command = {"diff", "-r", (folder_ / "a").string(), (folder_ / "b").string()}});
  EXPECT_TRUE(difference.succeeded()) << difference.out;
  EXPECT_EQ(image({"lint", (folder_ / "a" / "Containerfile").string()}).exit_code, 0);
  EXPECT_EQ(image({"render", "v2.11", "--output", (folder_ / "a").string()}).exit_code, 2);
}

TEST_F(Image, WhatDoesNotFitIsRefusedBeforeAnythingIsBuilt) {
  EXPECT_EQ(image({"build", "v2.6", "--cuda", "13"}).exit_code, 3);
  EXPECT_EQ(image({"build", "v2.9", "--wiht", "toolkit"}).exit_code, 2);
  EXPECT_EQ(image({"build"}).exit_code, 2);
  EXPECT_THAT(image({"build", "v2.9", "--cuda", "12.8", "--plan"}).out,
              HasSubstr("yoke.stack.torch=2.9.1+cu128"));
}

TEST_F(Image, VerifyNamesTheLayerAndTheSecret) {
  file("root/etc/ssh/ssh_host_rsa_key", "key");
  const std::string layer = (folder_ / "layer.tar").string();
  ASSERT_TRUE(
      core::run_child({.command = {"tar", "-cf", layer, "-C", (folder_ / "root").string(), "."}})
          .succeeded());

  const ChildResult result = image({"verify", layer, "--json"});

  EXPECT_EQ(result.exit_code, 1);
  const core::Json finding = core::parse_json(result.out, "stdout")["findings"][0];
  EXPECT_EQ(finding["id"], "secret");
  EXPECT_EQ(finding["layer"], 0);
  EXPECT_EQ(finding["path"], "etc/ssh/ssh_host_rsa_key");
}

TEST_F(ImageRun, ThePlanOfATreeOfFilesNamesItsCard) {
  file("host/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu\n");
  file("host/proc/driver/nvidia/gpus/0000:1b:00.0/information",
       "Model: NVIDIA H200\nDevice Minor: 2\n");
  file("host/dev/nvidia2", "c 195:2 0666 0\n");

  const ChildResult result =
      run({"sh"}, {"--plan", "--gpus", "all", "--host-root", (folder_ / "host").string()});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("node /dev/nvidia2 c 195:2  # GPU 0 (NVIDIA H200)"));
  EXPECT_THAT(result.out, HasSubstr("text /etc/ld.so.cache"));
}

}  // namespace
}  // namespace yoke::cli
