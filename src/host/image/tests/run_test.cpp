#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_host.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/image/emit.hpp"
#include "yoke/image/oci_layout.hpp"
#include "yoke/image/sandbox.hpp"

namespace yoke::image {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Four workers, two batches each, of 64 images of 3x224x224 floats.
RunRequest training() {
  RunRequest request{.image = "localhost/yoke:v2.9", .command = {"python", "train.py", "--lr=0.1"}};
  request.loader = {.workers = 4, .prefetch = 2, .batch_bytes = 64LL * 3 * 224 * 224 * 4};
  request.name = "My Job";
  return request;
}

TEST(SharedMemory, B117IsWhatTheWorkersKeepReady) {
  const RunRequest request = training();

  EXPECT_EQ(shared_memory_need(request.loader), 4LL * 2 * 64 * 602'112);
  EXPECT_GE(request.shared_memory(), shared_memory_need(request.loader));
}

TEST(SharedMemory, B117StandsInEveryFormThatHasIt) {
  RunRequest request = training();
  request.loader.batch_bytes *= 8;  // 2,466 MB
  const std::int64_t mebibytes = (shared_memory_need(request.loader) + (1 << 20) - 1) >> 20;

  EXPECT_THAT(emit("docker", request, {}), HasSubstr(core::text("--shm-size ", mebibytes, "m")));
  EXPECT_THAT(emit("compose", request, {}), HasSubstr(core::text("shm_size: ", mebibytes, "m")));
  EXPECT_THAT(emit("kubernetes", request, {}),
              HasSubstr(core::text("emptyDir:\n            medium: Memory\n            sizeLimit: ",
                                   mebibytes, "Mi")));
  EXPECT_THAT(emit("kubernetes", request, {}), HasSubstr("mountPath: /dev/shm"));
}

TEST(Limits, GrowWithTheWorkersAndStandWhereAFormHasThem) {
  RunRequest request = training();
  request.loader.workers = 256;
  const std::string files = std::to_string(256LL * 2 * 256);

  EXPECT_EQ(training().open_files(), 65'536);
  EXPECT_THAT(emit("docker", request, {}),
              HasSubstr("--ulimit memlock=-1 --ulimit stack=67108864 --ulimit nofile=" + files));
  EXPECT_THAT(emit("compose", request, {}), HasSubstr("nofile: " + files));
  EXPECT_THAT(emit("slurm", request, {}), HasSubstr("ulimit -S -l"));
  EXPECT_THAT(emit("kubernetes", request, {}), HasSubstr("# Limits on locked memory"));
}

TEST(StopTime, IsAtLeastWhatACheckpointTakes) {
  RunRequest request = training();
  request.grace_seconds = 90;

  EXPECT_THAT(emit("docker", request, {}), HasSubstr("--stop-timeout 90"));
  EXPECT_THAT(emit("kubernetes", request, {}), HasSubstr("terminationGracePeriodSeconds: 90"));
  EXPECT_THAT(emit("compose", request, {}), HasSubstr("stop_grace_period: 90s"));
  EXPECT_THAT(emit("slurm", request, {}), HasSubstr("--signal=B:TERM@90"));
}

class Emitted : public ::testing::TestWithParam<std::string> {};

TEST_P(Emitted, NamesImageProgramAndCard) {
  FakeHost host;
  host.driver("550.54.14", "/usr/lib/x86_64-linux-gnu");
  host.card(0, 1);
  RunRequest request = training();
  request.variables = {{"GREETING", "it's \"me\""}};
  const InjectionPlan plan = plan_injection(host.tree(), read_gpu_request({.option = "all"}));

  const std::string text = emit(GetParam(), request, plan);

  if (GetParam() == "cdi" || GetParam() == "oci" || GetParam() == "devcontainer") {
    EXPECT_NO_THROW((void)core::parse_json(text, "emitted"));
  } else {
    EXPECT_THAT(text, HasSubstr("localhost/yoke:v2.9"));
  }
  if (GetParam() != "cdi" && GetParam() != "devcontainer") {
    EXPECT_THAT(text, HasSubstr("train.py"));
  }
  if (GetParam() == "kubernetes") {
    EXPECT_THAT(text, HasSubstr("nvidia.com/gpu: 1"));
  } else if (GetParam() == "slurm") {
    EXPECT_THAT(text, HasSubstr("--gpus-per-node=1"));
  } else {
    EXPECT_THAT(text, HasSubstr("/dev/nvidia1"));
    EXPECT_THAT(text, HasSubstr("libcuda.so.1"));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Emitted, ::testing::ValuesIn(emit_targets()),
                         [](const auto& parameter) { return parameter.param; });

TEST(Emit, RefusesAnUnknownForm) { EXPECT_THROW((void)emit("dokcer", training(), {}), Error); }

TEST(Plan, SaysWhyOfEachPart) {
  FakeHost host;
  host.driver("550.54.14", "/usr/lib64");
  host.card(0, 0);

  const std::string text =
      plan_text(plan_injection(host.tree(), read_gpu_request({.option = "all"})));

  for (const std::string& line : core::split(text, '\n')) {
    if (line.starts_with("node") || line.starts_with("file") || line.starts_with("link") ||
        line.starts_with("variable")) {
      EXPECT_THAT(line, HasSubstr("  # "));
    }
  }
  EXPECT_THAT(text, HasSubstr("link /usr/lib64/libcuda.so -> libcuda.so.1  # triton"));
}

const SandboxHost kHost{
    .root = "/images/a", .here = "/home/me", .caller = {{"NB_UID", "1000"}, {"SECRET", "x"}}};

bool has_words(const std::vector<std::string>& all, const std::vector<std::string>& part) {
  return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

TEST(Sandbox, PutsTheCallersFolderAtWorkspaceAndHidesItsVariables) {
  const Sandbox sandbox = make_sandbox({.command = {"sh"}}, {}, {}, kHost);

  EXPECT_TRUE(has_words(sandbox.command, {"--bind", "/home/me", "/workspace"}));
  EXPECT_TRUE(has_words(sandbox.command, {"--chdir", "/workspace"}));
  EXPECT_TRUE(has_words(sandbox.command, {"--setenv", "NB_UID", "1000"}));
  EXPECT_THAT(sandbox.command, Not(Contains("SECRET")));
}

TEST(Sandbox, EntrypointAndCommandMeetAsInDocker) {
  const ImageSettings image{
      .variables = {{"A", "image"}}, .entrypoint = {"tini", "--"}, .command = {"bash"}};

  EXPECT_THAT(make_sandbox({}, image, {}, kHost).program, ElementsAre("tini", "--", "bash"));
  EXPECT_THAT(make_sandbox({.command = {"id"}}, image, {}, kHost).program,
              ElementsAre("tini", "--", "id"));
  EXPECT_THAT(make_sandbox({.entrypoint = "env"}, image, {}, kHost).program, ElementsAre("env"));
  EXPECT_EQ(make_sandbox({.variables = {{"A", "mine"}}}, image, {}, kHost).variables.at("A"),
            "mine");
}

TEST(Sandbox, APortThatWouldHaveToBeMappedIsRefused) {
  EXPECT_NO_THROW(
      (void)make_sandbox({.ports = {"8888:8888", "127.0.0.1:6006:6006/tcp"}}, {}, {}, kHost));
  EXPECT_THROW((void)make_sandbox({.ports = {"80:8888"}}, {}, {}, kHost), Error);
}

TEST(Sandbox, KnowsBeforeItStartsWhetherTheProgramCan) {
  FakeHost image;
  image.file("/bin/tool", "#!/bin/sh\n");
  image.file("/bin/plain", "x");
  image.file("/bin/script", "#!/opt/gone/python\n");
  for (const char* name : {"tool", "script"}) {
    std::filesystem::permissions(image.root() / "bin" / name, std::filesystem::perms::owner_all);
  }
  image.link("/bin/sh", "tool");
  image.link("/bin/out", "/../../bin/ls-that-is-not-here");
  const core::EnvironmentMap variables{{"PATH", "/usr/bin:/bin"}};
  const auto code = [&](const std::string& program) {
    return check_program(image.tree(), program, variables, "/").exit_code;
  };

  EXPECT_EQ(code("tool"), 0);
  EXPECT_EQ(code("/bin/plain"), 126);
  EXPECT_EQ(code("nothing"), 127);
  EXPECT_EQ(code("/bin/out"), 127);
  EXPECT_EQ(code("script"), 127);
}

TEST(RunRequest, SizesVolumesAndVariablesAreReadAsDockerReadsThem) {
  EXPECT_EQ(parse_size("8g"), 8LL << 30);
  EXPECT_EQ(parse_size("64mb"), 64LL << 20);
  EXPECT_EQ(parse_size("123"), 123);
  EXPECT_EQ(parse_size("8x"), std::nullopt);
  EXPECT_EQ(parse_size(""), std::nullopt);
  EXPECT_TRUE(parse_volume("/a:/b:ro").read_only);
  EXPECT_THROW((void)parse_volume("/a"), Error);
  EXPECT_THROW((void)parse_volume("/a:b"), Error);
  const core::EnvironmentMap read =
      parse_env_file("# c\nA=1=2\nHOME\nGONE\n", "f", {{"HOME", "/h"}});
  EXPECT_EQ(read, (core::EnvironmentMap{{"A", "1=2"}, {"HOME", "/h"}}));
  EXPECT_THROW((void)parse_env_file("a b=1\n", "f", {}), Error);
}

TEST(OciLayout, DamagedAndMaliciousOnesAreOneError) {
  for (const char* index : {"", "{}", R"({"manifests":[]})",
                            R"({"manifests":[{"digest":"sha256:../../../etc/passwd"}]})",
                            R"({"manifests":[{"digest":7}]})", R"({"manifests":[7]})"}) {
    FakeHost layout;
    layout.file("/oci-layout", "{}");
    layout.file("/index.json", index);
    EXPECT_THROW((void)open_image(layout.root()), Error) << index;
  }
}

TEST(OciLayout, SettingsAreThoseOfItsConfig) {
  const ImageSettings settings = read_image_config(
      R"({"config":{"Env":["PATH=/bin","BAD"],"Entrypoint":["tini"],"Cmd":null,"WorkingDir":"/w","User":"1000"}})",
      "c");

  EXPECT_EQ(settings.variables, (core::EnvironmentMap{{"PATH", "/bin"}}));
  EXPECT_THAT(settings.entrypoint, ElementsAre("tini"));
  EXPECT_TRUE(settings.command.empty());
  EXPECT_EQ(settings.folder, "/w");
}

}  // namespace
}  // namespace yoke::image
