#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"

namespace yoke::doctor {
namespace {

using ::testing::HasSubstr;

Finding visible(const std::string& value) {
  FakeMachine fake;
  fake.add_cards(8);
  fake.cards[2].uuid = "GPU-5a88e6c1-0000-1111-2222-333344445555";
  fake.cards[3].uuid = "GPU-5a11e6c1-0000-1111-2222-333344445555";
  fake.variables["CUDA_VISIBLE_DEVICES"] = value;
  return fake.find("driver.visible");
}

TEST(Visible, B101TheListIsReadAsCudaReadsItAndTheEntryThatEndedItIsNamed) {
  EXPECT_THAT(visible("0,1,2,3,4,5,6,7").text, HasSubstr("leaves 8 of 8"));
  EXPECT_EQ(visible("0,1,2,3,4,5,6,7").status, Status::pass);
  const Finding negative = visible("0,1,2,3,-1,5,6,7");
  EXPECT_THAT(negative.text, HasSubstr("leaves 4 of 8"));
  EXPECT_THAT(negative.text, HasSubstr("entry 5 (-1)"));
  EXPECT_EQ(negative.status, Status::warn);
  EXPECT_THAT(visible("0,1,2,3,-1,0,6,7").text, HasSubstr("leaves 4 of 8"));
  const Finding repeated = visible("0,1,0");
  EXPECT_EQ(repeated.status, Status::fail);
  EXPECT_THAT(repeated.text, HasSubstr("leaves 0 of 8"));
  EXPECT_THAT(repeated.text, HasSubstr("repeated index 0"));
  EXPECT_THAT(visible("GPU-5a88e6c1-0000-1111-2222-333344445555").text, HasSubstr("leaves 1 of 8"));
  EXPECT_THAT(visible("GPU-5a88").text, HasSubstr("leaves 1 of 8"));
  EXPECT_THAT(visible("GPU-5a").text, HasSubstr("ambiguous"));
  EXPECT_EQ(visible("GPU-5a").status, Status::fail);
  EXPECT_THAT(visible("").text, HasSubstr("set but empty"));
  EXPECT_EQ(visible("").status, Status::fail);
  const Finding sloppy = visible("1gpu2,2x");
  EXPECT_EQ(sloppy.status, Status::warn);
  EXPECT_THAT(sloppy.text, HasSubstr("leaves 2 of 8"));
  EXPECT_THAT(visible("9").text, HasSubstr("index 9, only 8 GPUs"));
}

TEST(Driver, AMachineWithoutCardsTrainsOnItsCpu) {
  const FakeMachine fake;

  EXPECT_EQ(fake.find("driver.bus").status, Status::pass);
  for (const char* id : {"driver.module", "driver.nodes", "driver.library", "driver.nvml"})
    EXPECT_EQ(fake.find(id).status, Status::skip) << id;
}

TEST(Driver, AWholeOnePasses) {
  FakeMachine fake;
  fake.add_cards(8);

  for (const char* id : {"driver.module", "driver.nodes", "driver.library", "driver.nvml",
                         "driver.visible", "driver.placement"})
    EXPECT_EQ(fake.find(id).status, Status::pass) << id << ": " << fake.find(id).text;
  EXPECT_EQ(fake.find("driver.nvml").text, "8 x NVIDIA H200");
  EXPECT_THAT(fake.find("driver.module").text, HasSubstr("580.95.05"));
}

TEST(Driver, CardsOnTheBusWithoutAModuleAreAFailure) {
  FakeMachine fake;
  fake.scratch.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  fake.scratch.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");

  EXPECT_THAT(fake.find("driver.module").text, HasSubstr("module is not loaded"));
  fake.scratch.write("sys/module/nouveau/x");
  EXPECT_THAT(fake.find("driver.module").text, HasSubstr("nouveau"));
}

TEST(Driver, AContainerWithoutCardsIsToldFromAMachineWithoutNodes) {
  FakeMachine fake;
  fake.add_cards(2);
  std::filesystem::remove(fake.scratch.folder() / "dev/nvidia0");
  std::filesystem::remove(fake.scratch.folder() / "dev/nvidia1");

  EXPECT_THAT(fake.find("driver.nodes").fix, HasSubstr("nvidia-modprobe"));
  fake.scratch.write(".dockerenv");
  EXPECT_THAT(fake.find("driver.nodes").fix, HasSubstr("--gpus all"));
}

TEST(Driver, TheMissingMemoryNodeIsNamedAsTheCauseOf999) {
  FakeMachine fake;
  fake.add_cards(1);
  std::filesystem::remove(fake.scratch.folder() / "dev/nvidia-uvm");

  const Finding finding = fake.find("driver.nodes");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, HasSubstr("999"));
  EXPECT_THAT(finding.fix, HasSubstr("nvidia-modprobe -u -c0"));
}

TEST(Driver, ALibraryOfAnotherVersionThanTheModuleIsTheCauseOf803) {
  FakeMachine fake;
  fake.add_cards(1);
  fake.scratch.write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release\n");

  const Finding finding = fake.find("driver.library");

  EXPECT_EQ(finding.status, Status::fail);
  EXPECT_THAT(finding.text, HasSubstr("803"));
  EXPECT_THAT(finding.text, HasSubstr("570.124.06"));
}

TEST(Driver, AContainerThatLostItsDevicesIsTold) {
  FakeMachine fake;
  fake.add_cards(1);
  fake.nvml_error = "libnvidia-ml.so.1: Unknown Error";

  EXPECT_THAT(fake.find("driver.nvml").text, HasSubstr("lost its right"));
}

TEST(Driver, SwitchesWithoutTheFabricManagerAreTheCauseOf802) {
  FakeMachine fake;
  fake.add_cards(8);
  fake.scratch.write("sys/bus/pci/devices/0000:c0:00.0/vendor", "0x10de\n");
  fake.scratch.write("sys/bus/pci/devices/0000:c0:00.0/class", "0x068000\n");

  EXPECT_THAT(fake.find("driver.fabric").text, HasSubstr("802"));
  fake.scratch.write("proc/77/comm", "nv-fabricmanage\n");
  EXPECT_EQ(fake.find("driver.fabric").status, Status::pass);
}

TEST(Driver, TheCompatPackageBesideAGeForceIsAWarning) {
  FakeMachine fake;
  fake.add_cards(1, "NVIDIA GeForce RTX 4090");
  fake.scratch.write("usr/local/cuda/compat/libcuda.so.1");

  EXPECT_THAT(fake.find("driver.compat").text, HasSubstr("804"));
}

}  // namespace
}  // namespace yoke::doctor
