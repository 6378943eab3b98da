#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/build_image.hpp"
#include "yoke/image/extend.hpp"
#include "yoke/image/lint.hpp"

namespace yoke::image {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHashA(64, 'a');
const std::string kHashB(64, 'b');

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

WheelLock small_lock() {
  return {.torch = "2.9.1+cu128",
          .python = "3.11",
          .wheels = {{"jupyterlab", "4.5.0", {kHashB}},
                     {"nvidia-cudnn-cu12", "9.10.2.21", {kHashA}},
                     {"torch", "2.9.1", {kHashA, kHashB}}}};
}

std::string file_of(const std::vector<ContextFile>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const ContextFile& file) { return file.path == path; });
  return found == files.end() ? "(no " + path + ")" : found->text;
}

TEST(BuildPlan, WithoutADriverTakesWhatPipGives) {
  const BuildPlan plan = plan_build({.release = "v2.9"}, {});

  EXPECT_EQ(plan.torch(), "2.9.1+cu128");
  EXPECT_EQ(plan.python, "3.11");
  EXPECT_EQ(plan.system, "debian12");
  EXPECT_EQ(plan.tag, "localhost/yoke:v2.9");
  EXPECT_THAT(plan.wheels, Contains("torch==2.9.1"));
  EXPECT_THAT(plan.wheels, Contains("torchvision==0.24.1"));
  EXPECT_THAT(plan.wheels, Contains("jupyterlab"));
  EXPECT_TRUE(plan.extra_index_url.empty());
  EXPECT_EQ(plan.labels.driver, "525.60.13");
  EXPECT_THAT(plan.why, HasSubstr("no NVIDIA driver here"));
}

TEST(BuildPlan, AutoTakesTheCudaThatDriverAndCardsAllow) {
  const BuildHost old{.driver = stack::Version::parse("550.54.15")};
  const BuildHost fresh{.cards = {{.arch = stack::Arch{12, 0}}},
                        .driver = stack::Version::parse("580.95.05")};

  EXPECT_EQ(plan_build({.release = "2.11"}, old).set.build->cuda_series().substr(0, 2), "12");
  EXPECT_THAT(plan_build({.release = "2.11"}, old).why, HasSubstr("driver 550.54.15"));
  EXPECT_EQ(plan_build({.release = "2.11"}, fresh).torch(), "2.11.0+cu130");
}

TEST(BuildPlan, AWheelThatPypiLacksComesFromPytorchsIndex) {
  const BuildPlan plan = plan_build({.release = "v2.9", .cuda = "12.6"}, {});

  EXPECT_THAT(plan.wheels, Contains("torch==2.9.1+cu126"));
  EXPECT_EQ(plan.extra_index_url, "https://download.pytorch.org/whl/cu126");
}

TEST(BuildPlan, NewestIsTheNewestThatYokeIsTestedOn) {
  EXPECT_EQ(plan_build({.release = "newest"}, {}).release, ImageParts::built_in().yoke.back());
}

TEST(BuildPlan, OldTorchGetsOldNumpyAndAPythonThatItHasWheelsFor) {
  const BuildPlan plan = plan_build({.release = "2.2"}, {});

  EXPECT_THAT(plan.wheels, Contains("numpy<2"));
  EXPECT_EQ(plan.python, "3.11");
}

TEST(BuildPlan, WhatCannotBeIsSaidWithItsReason) {
  const auto asked = [](const BuildRequest& request, const BuildHost& host = {}) {
    return error_of([&] { (void)plan_build(request, host); });
  };

  EXPECT_THAT(asked({.release = "2.6", .cuda = "13"}), HasSubstr("no set fits"));
  EXPECT_THAT(asked({.release = "2.9", .cuda = "11.8"}), HasSubstr("nearest: torch 2.7.1+cu118"));
  EXPECT_THAT(asked({.release = "2.9", .python = "3.8"}), HasSubstr("no base here has Python 3.8"));
  EXPECT_THAT(asked({.release = "pear"}), HasSubstr("'pear' is no release"));
  EXPECT_THAT(asked({.release = "2.9", .with = {"toolkti"}}), HasSubstr("did you mean toolkit?"));
  EXPECT_THAT(asked({.release = "2.9", .base = "apt:breezy"}), HasSubstr("no such suite"));
  EXPECT_THAT(asked({.release = "2.11"}, {.driver = stack::Version::parse("390.10")}),
              HasSubstr("no set fits"));
}

TEST(BuildPlan, ABaseThatIsAFileIsKnownByItsSystem) {
  const BuildRequest unknown{.release = "2.9", .base = "/tmp/root.tar"};
  BuildRequest known = unknown;
  known.base_system = "ubuntu24.04";

  EXPECT_EQ(plan_build(known, {}).python, "3.12");
  EXPECT_EQ(plan_build(known, {}).labels.glibc, "2.39");
  EXPECT_THAT(error_of([&] { (void)plan_build(unknown, {}); }), HasSubstr("add --python"));
}

TEST(BuildPlan, NvccIsOfTorchsOwnCudaOrRefused) {
  const auto toolkit = [](const std::string& release, const std::string& base) {
    return BuildRequest{.release = release, .python = "3.12", .base = base, .with = {"toolkit"}};
  };

  EXPECT_THAT(plan_build({.release = "2.11", .with = {"toolkit"}}, {}).wheels,
              Contains("nvidia-cuda-nvcc==13.0.*"));
  EXPECT_THAT(
      error_of([&] { (void)plan_build(toolkit("2.9", ""), {}); }),
      AllOf(HasSubstr("no wheels with nvcc for CUDA 12"), HasSubstr("nvidia/cuda:12.8.1-devel")));
  EXPECT_THAT(error_of([&] {
                (void)plan_build(toolkit("2.11", "nvidia/cuda:12.8.1-devel-ubuntu24.04"), {});
              }),
              HasSubstr("extensions would not load"));
  EXPECT_NO_THROW((void)plan_build(toolkit("2.9", "nvidia/cuda:12.8.1-devel-ubuntu24.04"), {}));
}

TEST(Lock, IsWrittenByLayerAndReadBack) {
  const std::string text = write_lock(small_lock(), ImageParts::built_in());
  const WheelLock read = read_lock(text, "lock");

  EXPECT_EQ(read.torch, "2.9.1+cu128");
  EXPECT_EQ(read.python, "3.11");
  ASSERT_NE(read.find("torch"), nullptr);
  EXPECT_EQ(read.find("torch")->hashes, (std::vector{kHashA, kHashB}));
  EXPECT_LT(text.find("# layer cuda"), text.find("# layer tools"));
  EXPECT_LT(text.find("# layer tools"), text.find("# layer torch"));
}

TEST(Lock, ASentenceAboutTorchIsNoHeading) {
  EXPECT_EQ(read_lock("# torch 2.9.1, cpu: what it links.\n# torch 2.9.1+cu128\n", "l").torch,
            "2.9.1+cu128");
}

TEST(Lock, DamagedLinesAreNamed) {
  const auto fault = [](const std::string& text) {
    return error_of([&] { (void)read_lock(text, "a.lock"); });
  };

  EXPECT_THAT(fault("torch==2.9.1\n"), HasSubstr("a.lock: line 1: torch has no hash"));
  EXPECT_THAT(fault("torch==2.9.1 --hash=sha256:12\n"), HasSubstr("is no sha256"));
  EXPECT_THAT(fault("# x\ntorch>=2 --hash=sha256:" + kHashA), HasSubstr("is not NAME==VERSION"));
  EXPECT_THAT(fault("a==1 --hash=sha256:" + kHashA + "\nA==2 --hash=sha256:" + kHashB + "\n"),
              HasSubstr("a stands twice"));
}

TEST(Lock, ReportOfPipBecomesOne) {
  const std::string report =
      R"({"install":[{"metadata":{"name":"Torch","version":"2.9.1"},"download_info":{"archive_info":{"hashes":{"sha256":")" +
      kHashA + R"("}}}}]})";

  EXPECT_EQ(lock_of_report(report, "r").find("torch")->version, "2.9.1");
  EXPECT_THROW((void)lock_of_report("{}", "r"), Error);
  EXPECT_THROW((void)lock_of_report(R"({"install":[{}]})", "r"), Error);
}

TEST(Lock, OfAnotherTorchIsRefused) {
  const BuildPlan plan = plan_build({.release = "2.6"}, {});

  EXPECT_THAT(error_of([&] { check_lock(plan, small_lock()); }),
              HasSubstr("of torch 2.9.1+cu128, and 2.6.0+cu124 was asked for"));
  EXPECT_NO_THROW(check_lock(plan_build({.release = "2.9"}, {}), small_lock()));
}

TEST(Lock, EveryReleaseOfYokeHasOneInTheProgram) {
  for (const std::string& release : ImageParts::built_in().yoke) {
    const BuildPlan plan = plan_build({.release = release}, {});
    const auto lock = known_lock(plan);
    ASSERT_TRUE(lock) << lock_name(plan);
    EXPECT_NO_THROW(check_lock(plan, *lock));
    EXPECT_NE(lock->find("torchvision"), nullptr);
    EXPECT_NE(lock->find("jupyterlab"), nullptr);
    EXPECT_NE(lock->find("setuptools"), nullptr);  // which the system's stage takes away
  }
}

class Rendered : public ::testing::Test {
 protected:
  std::vector<ContextFile> files(const BuildRequest& request) {
    const BuildPlan plan = plan_build(request, {});
    return render(plan, small_lock(), {});
  }
};

TEST_F(Rendered, CudaLiesBelowTorch) {
  const std::string text = file_of(files({.release = "v2.9"}), "Containerfile");

  EXPECT_LT(text.find("lock/cuda.lock"), text.find("lock/tools.lock"));
  EXPECT_LT(text.find("lock/tools.lock"), text.find("lock/torch.lock"));
}

TEST_F(Rendered, LayerOfCudaDoesNotKnowTorchsPatch) {
  WheelLock other = small_lock();
  other.wheels.back().version = "2.9.0";
  other.torch = "2.9.0+cu128";
  const BuildPlan plan = plan_build({.release = "2.9.0"}, {});

  EXPECT_EQ(file_of(render(plan, other, {}), "lock/cuda.lock"),
            file_of(files({.release = "2.9.1"}), "lock/cuda.lock"));
}

TEST_F(Rendered, ChoosesNoCardsAndHoldsNoSecret) {
  const std::string text = file_of(files({.release = "v2.9"}), "Containerfile");

  EXPECT_THAT(text, HasSubstr("NVIDIA_DRIVER_CAPABILITIES=\"compute,utility\""));
  EXPECT_THAT(text, Not(HasSubstr("NVIDIA_VISIBLE_DEVICES")));
  EXPECT_THAT(text, HasSubstr("/etc/ssh/ssh_host_*"));
  EXPECT_THAT(text, HasSubstr("ENTRYPOINT [\"/usr/bin/tini\""));
  EXPECT_THAT(text, HasSubstr("yoke.stack.cudnn=\"9.10.2.21\""));
}

TEST_F(Rendered, OurOwnLinterFindsNothing) {
  for (const char* release : {"v2.6", "v2.9", "v2.11"}) {
    for (const Finding& finding :
         lint(file_of(files({.release = release}), "Containerfile"), FileKind::dockerfile))
      EXPECT_EQ(finding.severity, Severity::ok) << finding.line << ": " << finding.reason;
  }
}

TEST_F(Rendered, ConstraintsHoldTorchAndNameTheWayOut) {
  const std::string text = file_of(files({.release = "v2.9"}), "image/constraints.txt");

  EXPECT_THAT(text, AllOf(HasSubstr("torch==2.9.1\n"), HasSubstr("nvidia-cudnn-cu12==9.10.2.21\n"),
                          HasSubstr("PIP_CONSTRAINT= pip install"), Not(HasSubstr("jupyterlab"))));
}

TEST_F(Rendered, SbomListsEachWheelWithItsHash) {
  const core::Json sbom =
      core::parse_json(file_of(files({.release = "v2.9"}), "image/sbom.spdx.json"), "sbom");

  ASSERT_EQ(sbom["packages"].size(), 3u);
  EXPECT_EQ(sbom["packages"][1]["checksums"][0]["checksumValue"], kHashA);
  EXPECT_EQ(sbom["packages"][2]["externalRefs"][0]["referenceLocator"], "pkg:pypi/torch@2.9.1");
}

TEST_F(Rendered, IsTheSameTwice) {
  const auto once = files({.release = "v2.9"});
  const auto again = files({.release = "v2.9"});

  ASSERT_EQ(once.size(), again.size());
  for (std::size_t i = 0; i < once.size(); ++i)
    EXPECT_EQ(once[i].text, again[i].text) << once[i].path;
}

TEST_F(Rendered, WithoutPartsTheirPackagesAreGone) {
  const std::string text =
      file_of(files({.release = "v2.9", .without = {"ssh", "yoke"}}), "Containerfile");

  EXPECT_THAT(text, Not(HasSubstr("openssh-server")));
  EXPECT_THAT(text, Not(HasSubstr("libgloo-dev")));
  EXPECT_THAT(text, HasSubstr("g++"));
}

TEST(EngineCommands, AreThoseOfTheirPrograms) {
  const BuildStep step{.context = "/c",
                       .target = "system",
                       .tag = "localhost/a:1",
                       .secrets = {{.id = "ca.pem", .file = "/etc/ca"}},
                       .fresh = true};

  const auto words = [&](EngineKind kind) {
    return core::joined(Engine(kind, {}).build_command(step), " ");
  };
  EXPECT_EQ(words(EngineKind::buildah),
            "buildah bud --isolation chroot --layers --force-rm --timestamp 0 -t localhost/a:1 "
            "--no-cache "
            "--target system --secret id=ca.pem,src=/etc/ca -f /c/Containerfile /c");
  EXPECT_THAT(words(EngineKind::podman),
              HasSubstr("podman build --layers --force-rm --timestamp 0"));
  EXPECT_THAT(words(EngineKind::docker), HasSubstr("rewrite-timestamp=true"));
}

TEST(EngineCommands, WithoutAProgramSayWhatToInstall) {
  const core::EnvironmentMap nowhere{{"PATH", "/nowhere"}};

  EXPECT_THAT(error_of([&] { (void)Engine::find("", nowhere); }),
              HasSubstr("apt-get install buildah"));
  EXPECT_THAT(error_of([&] { (void)Engine::find("podmna", nowhere); }),
              HasSubstr("did you mean podman?"));
}

TEST(Extension, OnlyWhatDoesNotTouchTheGuardedComes) {
  const auto item = [](const std::string& name, const std::string& version,
                       const std::string& needs) {
    return R"({"metadata":{"name":")" + name + R"(","version":")" + version +
           R"(","requires_dist":[)" + needs +
           R"(]},"download_info":{"archive_info":{"hashes":{"sha256":")" + kHashA + R"("}}}})";
  };
  const std::string state = R"({"torch":"2.9.1"})";
  const std::string pear = item("pear", "1.0", R"("torch>=2.12 ; python_version > \"3\"")");

  const Extension good =
      judge_extension(R"({"install":[)" + item("wandb", "1.0", "") + "]}", state, {"wandb"});
  const Extension bad =
      judge_extension(R"({"install":[)" + pear + "," + item("torch", "2.12.0", "") + "," +
                          item("nvidia-nccl-cu13", "2.29.7", "") + "]}",
                      state, {"pear"});

  EXPECT_TRUE(good.conflicts.empty());
  EXPECT_NE(good.lock.find("wandb"), nullptr);
  ASSERT_EQ(bad.conflicts.size(), 2u);
  EXPECT_THAT(bad.conflicts[0], HasSubstr("nvidia-nccl-cu13 2.29.7 would come"));
  EXPECT_THAT(bad.conflicts[1], AllOf(HasSubstr("torch 2.9.1 would become 2.12.0"),
                                      HasSubstr("pear 1.0 asks for torch>=2.12")));
}

TEST(Output, IsReadOrRefused) {
  EXPECT_EQ(parse_output("oci:a/b").path, "a/b");
  EXPECT_EQ(parse_output("docker").kind, "docker");
  for (const char* bad : {"oci", "docker:x", "tar:x", ""})
    EXPECT_THROW((void)parse_output(bad), Error) << bad;
}

}  // namespace
}  // namespace yoke::image
