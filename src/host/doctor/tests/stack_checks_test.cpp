#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "yoke/stack/fake_elf.hpp"

namespace yoke::doctor {
namespace {

using stack::Arch;
using stack::fake_elf;
using stack::FakeElf;
using ::testing::AllOf;
using ::testing::HasSubstr;

Finding torchvision(const std::string& torch, const std::string& version) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch(torch, "12.4");
  fake.add_package("torchvision", version);
  return fake.find("stack.torchvision");
}

TEST(Stack, B102AWrongPairIsNamedWithTheVersionThatFits) {
  EXPECT_EQ(torchvision("2.6.0", "0.21.0").status, Status::pass);
  const Finding other = torchvision("2.5.1", "0.21.0");
  EXPECT_EQ(other.status, Status::fail);
  EXPECT_THAT(other.fix, HasSubstr("0.20.1"));
  EXPECT_EQ(torchvision("2.6.0+cu124", "0.21.0+cu126").status, Status::warn);
  EXPECT_EQ(torchvision("2.6.0+cu124", "0.21.0+cu118").status, Status::fail);
  EXPECT_EQ(torchvision("2.6.0+cpu", "0.21.0+cu124").status, Status::fail);
  const Finding unknown = torchvision("2.6.0", "0.99");
  EXPECT_EQ(unknown.status, Status::warn);
  EXPECT_THAT(unknown.text, HasSubstr("cannot judge"));
}

TEST(Stack, B103TwoInstallationsInOneFolderAreNamedWithTheOneThatIsLoaded) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.6.0", "12.4");
  fake.scratch.write(fake.site + "torch-2.8.0.dist-info/METADATA", "Name: torch\n");

  const Finding finding = fake.find("stack.single");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, AllOf(HasSubstr("loaded is 2.6.0 of " +
                                            (fake.scratch.folder() / fake.site / "torch").string()),
                                  HasSubstr("2.8.0 ("), HasSubstr("torch-2.8.0.dist-info")));
  EXPECT_THAT(finding.fix, HasSubstr("clean environment"));
}

TEST(Stack, B103ACopyEarlierOnThePathIsTheOneThatIsLoaded) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.8.0", "12.8");
  fake.scratch.write("user/torch/version.py", "__version__ = '2.6.0'\ncuda = '12.4'\n");
  fake.variables["PYTHONPATH"] = "/user";

  const Finding finding = fake.find("stack.single");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, AllOf(HasSubstr("loaded is 2.6.0 of " +
                                            (fake.scratch.folder() / "user/torch").string()),
                                  HasSubstr("2.8.0 (")));
}

TEST(Stack, OneInstallationPasses) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.6.0+cu124", "12.4");

  EXPECT_EQ(fake.find("stack.single").status, Status::pass);
  EXPECT_EQ(fake.find("stack.torch").status, Status::pass);
}

/// Adds a torch that links a library of the wheel, found by a run path of the new kind.
void add_library(FakeMachine& fake, const std::string& soname, const std::string& pin,
                 const std::string& bundled) {
  fake.add_python();
  fake.add_torch("2.1.0+cu121", "12.1", "Requires-Dist: " + pin);
  fake.scratch.write(fake.site + "torch/lib/libtorch_cuda.so",
                     fake_elf({.needed = {soname}, .runpath = "$ORIGIN/../../nvidia/own/lib"}));
  fake.scratch.write(fake.site + "nvidia/own/lib/" + soname + bundled);
  fake.scratch.link(fake.site + "nvidia/own/lib/" + soname, soname + bundled);
}

TEST(Stack, B105AnOlderCudnnOnTheLibraryPathHidesTheBundledOne) {
  const auto machine = [](const std::string& pin, const std::string& bundled,
                          const std::string& found) {
    FakeMachine fake;
    add_library(fake, "libcudnn.so.8", pin, bundled);
    fake.scratch.write("opt/cudnn/libcudnn.so.8." + found);
    fake.scratch.link("opt/cudnn/libcudnn.so.8", "libcudnn.so.8." + found);
    fake.variables["LD_LIBRARY_PATH"] = "/opt/cudnn";
    return fake.find("stack.cudnn");
  };

  const Finding older = machine("nvidia-cudnn-cu12==8.3.2.44", ".3.2", "0.3");
  const Finding newer = machine("nvidia-cudnn-cu12==8.7.0.84", ".7.0", "9.2");

  EXPECT_EQ(older.status, Status::fail);
  EXPECT_THAT(older.text, AllOf(HasSubstr("8.0.3 is loaded"), HasSubstr("/opt/cudnn/libcudnn.so.8"),
                                HasSubstr("from LD_LIBRARY_PATH"), HasSubstr("it hides 8.3.2")));
  EXPECT_THAT(older.fix, HasSubstr("take LD_LIBRARY_PATH away"));
  EXPECT_EQ(newer.status, Status::pass);
}

TEST(Stack, B105AnotherMajorCudnnIsAnErrorAndOfTwoCopiesTheFirstWins) {
  FakeMachine other;
  add_library(other, "libcudnn.so.9", "nvidia-cudnn-cu12==8.9.2.26", ".1.0");
  FakeMachine two;
  add_library(two, "libcudnn.so.8", "nvidia-cudnn-cu12==8.9.2.26", ".9.2");
  for (const char* copy : {"a/libcudnn.so.8.5.0", "b/libcudnn.so.8.9.7"}) {
    two.scratch.write(copy);
    two.scratch.link(std::string(copy).substr(0, 2) + "libcudnn.so.8", std::string(copy).substr(2));
  }
  two.variables["LD_LIBRARY_PATH"] = "/a:/b";

  EXPECT_EQ(other.find("stack.cudnn").status, Status::fail);
  EXPECT_THAT(other.find("stack.cudnn").text, HasSubstr("another major"));
  const Finding finding = two.find("stack.cudnn");
  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, AllOf(HasSubstr("8.5.0 is loaded"), HasSubstr("/b/libcudnn.so.8")));
}

TEST(Stack, AnEngineOfTheSystemsCudnnBehindTheWheelsIsFound) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.9.1+cu128", "12.8");
  fake.scratch.write(fake.site + "torch/lib/libtorch_cuda.so",
                     fake_elf({.needed = {"libcudnn.so.9"}, .rpath = "$ORIGIN/../../cudnn"}));
  fake.scratch.write(fake.site + "cudnn/libcudnn.so.9", fake_elf({.runpath = "$ORIGIN"}));
  fake.scratch.write(fake.site + "cudnn/libcudnn_ops.so.9", fake_elf({}));
  fake.scratch.write("opt/libcudnn_ops.so.9", fake_elf({}));
  fake.variables["LD_LIBRARY_PATH"] = "/opt";

  EXPECT_THAT(fake.find("stack.cudnn").text, HasSubstr("would open the engine"));
}

/// NCCL packages that all provide the one file, which says `loaded`.
Finding nccl(const std::string& pin, const std::string& loaded,
             const std::vector<std::pair<std::string, std::string>>& packages) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.8.0+cu128", "12.8", "Requires-Dist: " + pin);
  fake.scratch.write(
      fake.site + "torch/lib/libtorch_cuda.so",
      fake_elf({.needed = {"libnccl.so.2"}, .rpath = "$ORIGIN/../../nvidia/nccl/lib"}));
  fake.scratch.write(fake.site + "nvidia/nccl/lib/libnccl.so.2",
                     fake_elf({.data = "NCCL version " + loaded + "+cuda12.8"}));
  for (const auto& [name, version] : packages)
    fake.scratch.write(fake.site + name + "-" + version + ".dist-info/RECORD",
                       "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n");
  return fake.find("stack.nccl");
}

TEST(Stack, B106TwoPackagesThatProvideOneNcclAreNamedWithTheOneToRemove) {
  const Finding two = nccl("nvidia-nccl-cu12==2.27.3", "2.14.3",
                           {{"nvidia_nccl_cu11", "2.14.3"}, {"nvidia_nccl_cu12", "2.27.3"}});
  const Finding cuda = nccl("nvidia-nccl-cu12==2.29.3", "2.29.7",
                            {{"nvidia_nccl_cu12", "2.29.3"}, {"nvidia_nccl_cu13", "2.29.7"}});
  const Finding one = nccl("nvidia-nccl-cu12==2.27.3", "2.27.3", {{"nvidia_nccl_cu12", "2.27.3"}});

  EXPECT_EQ(two.status, Status::fail);
  EXPECT_THAT(two.text, AllOf(HasSubstr("nvidia-nccl-cu11 2.14.3 and nvidia-nccl-cu12 2.27.3"),
                              HasSubstr("needed is NCCL 2.27.3"), HasSubstr("loaded is 2.14.3"),
                              HasSubstr("nvidia/nccl/lib/libnccl.so.2")));
  EXPECT_THAT(two.fix, HasSubstr("pip uninstall nvidia-nccl-cu11,"));
  EXPECT_THAT(cuda.fix, HasSubstr("pip uninstall nvidia-nccl-cu13,"));
  EXPECT_EQ(one.status, Status::pass) << one.text;
}

TEST(Stack, B106AnOlderNcclOfTheSystemEarlierOnThePathIsNamed) {
  FakeMachine fake;
  add_library(fake, "libnccl.so.2", "nvidia-nccl-cu12==2.27.3", ".27.3");
  fake.scratch.write("opt/libnccl.so.2.18.5");
  fake.scratch.link("opt/libnccl.so.2", "libnccl.so.2.18.5");
  fake.variables["LD_LIBRARY_PATH"] = "/opt";

  const Finding finding = fake.find("stack.nccl");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, AllOf(HasSubstr("2.18.5 is loaded"), HasSubstr("built with 2.27.3")));
}

TEST(Stack, B109NumPyPythonAndTheCompilerAreJudgedEachByItsOwnRule) {
  FakeMachine fake;
  fake.add_python("3.13");
  fake.add_torch("2.2.2+cu121", "12.1");
  fake.add_package("numpy", "2.0.0");
  fake.scratch.write("usr/local/cuda-10.1/bin/nvcc");
  fake.variables["PATH"] = "/usr/local/cuda-10.1/bin";

  const Finding numpy = fake.find("stack.numpy");
  const Finding python = fake.find("stack.python");
  const Finding nvcc = fake.find("stack.nvcc");

  EXPECT_EQ(numpy.status, Status::fail);
  EXPECT_THAT(numpy.fix, AllOf(HasSubstr("numpy<2"), HasSubstr("torch >= 2.3")));
  EXPECT_EQ(python.status, Status::fail);
  EXPECT_THAT(python.text, HasSubstr("no wheel of torch 2.2.2+cu121 for Python 3.13"));
  EXPECT_EQ(nvcc.status, Status::warn);
  EXPECT_THAT(nvcc.text, AllOf(HasSubstr("10.1"), HasSubstr("only for compiling extensions")));
}

TEST(Stack, B109TheCppLibraryThatLacksAVersionIsNamedWithIt) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.9.1+cu128", "12.8");
  fake.scratch.write(fake.site + "torch/lib/libc10.so",
                     fake_elf({.needed_versions = {{"libstdc++.so.6", "GLIBCXX_3.4.30"}}}));
  fake.scratch.write("usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                     fake_elf({.defined_versions = {"GLIBCXX_3.4.9", "GLIBCXX_3.4.29"}}));

  const Finding finding = fake.find("stack.libstdcxx");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, AllOf(HasSubstr("usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
                                  HasSubstr("needs GLIBCXX_3.4.30")));
}

TEST(Stack, ADriverThatIsTooOldForTorchIsNamedWithTheOneThatIsNeeded) {
  FakeMachine fake;
  fake.add_cards(1, "NVIDIA GeForce RTX 4090", "570.124.06");
  fake.add_python();
  fake.add_torch("2.11.0+cu130", "13.0");

  const Finding finding = fake.find("stack.driver");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, HasSubstr("570.124.06 < needed 580.65.06"));
  EXPECT_THAT(finding.fix, HasSubstr("--driver 570.124.06"));
}

TEST(Stack, ACardWithoutCodeIsNamedWithWhatTorchHas) {
  FakeMachine fake;
  fake.add_cards(1, "NVIDIA GeForce GTX 1080");
  fake.add_python();
  fake.add_torch("2.9.1+cu128", "12.8");
  fake.scratch.write(fake.site + "torch/lib/libtorch_cuda.so",
                     fake_elf({.fat_binaries = {{{Arch{7, 5}, Arch{9, 0}}, true}}}));

  const Finding finding = fake.find("stack.code");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, AllOf(HasSubstr("GTX 1080 (sm_61)"), HasSubstr("sm_75 sm_90 + PTX")));
}

TEST(Stack, AWheelWithoutCudaBesideCardsIsAFailure) {
  FakeMachine fake;
  fake.add_cards(1);
  fake.add_python();
  fake.add_torch("2.9.1+cpu", "none");

  EXPECT_EQ(fake.find("stack.flavour").status, Status::fail);
  EXPECT_THAT(fake.find("stack.flavour").text, HasSubstr("is_available() is False"));
}

TEST(Stack, LibrariesOnThePathThatTheWheelBringsAreNamed) {
  FakeMachine fake;
  fake.add_python();
  fake.add_torch("2.9.1+cu128", "12.8");
  fake.scratch.write(fake.site + "torch/lib/libtorch_cuda.so",
                     fake_elf({.needed = {"libcublas.so.12"}}));
  fake.scratch.write("cluster/libnvJitLink.so.12");
  fake.variables["LD_LIBRARY_PATH"] = "/cluster";

  EXPECT_THAT(fake.find("stack.shadow").text, HasSubstr("libnvJitLink.so.12"));
}

TEST(Stack, AMachineWithoutTorchIsAWarningAndTheRestIsSkipped) {
  const FakeMachine fake;

  EXPECT_EQ(fake.find("stack.torch").status, Status::warn);
  for (const char* id : {"stack.single", "stack.driver", "stack.code", "stack.cudnn", "stack.abi"})
    EXPECT_EQ(fake.find(id).status, Status::skip) << id;
}

}  // namespace
}  // namespace yoke::doctor
