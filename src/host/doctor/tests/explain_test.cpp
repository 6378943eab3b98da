#include "yoke/doctor/explain.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"

namespace yoke::doctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Meaning first(const FakeMachine& fake, const std::string& text) {
  const auto meanings = explain_text(text, *fake.machine());
  return meanings.empty() ? Meaning{} : meanings.front();
}

TEST(Explain, B108EachErrorNumberHasItsOwnCauseAndHostFact) {
  FakeMachine old;
  old.add_cards(1, "NVIDIA GeForce GTX 1080", "390.116");
  old.add_python();
  old.add_torch("1.0.0", "9.2");
  FakeMachine mixed;
  mixed.add_cards(1);
  mixed.scratch.write("proc/driver/nvidia/version", "NVRM version: X  570.124.06  Y\n");
  FakeMachine geforce;
  geforce.add_cards(1, "NVIDIA GeForce RTX 4090");
  geforce.scratch.write("usr/local/cuda/compat/libcuda.so.1");
  FakeMachine board;
  board.add_cards(8);
  board.scratch.write("sys/bus/pci/devices/0000:c0:00.0/vendor", "0x10de\n");
  board.scratch.write("sys/bus/pci/devices/0000:c0:00.0/class", "0x068000\n");

  const Meaning too_old = first(old, "cudaGetDeviceCount() returned error 35");
  const Meaning mismatch = first(mixed, "Error 803: system has unsupported display driver");
  const Meaning compat = first(geforce,
                               "CUDA error 804: forward compatibility was attempted on "
                               "non supported HW");
  const Meaning fabric = first(board, "cudaGetDeviceCount: Error 802: system not yet initialized");

  EXPECT_EQ(too_old.id, "cuda-35");
  EXPECT_THAT(too_old.seen, HasSubstr("390.116 < needed 396"));
  EXPECT_THAT(too_old.change, HasSubstr("a driver from 396"));
  EXPECT_EQ(mismatch.id, "cuda-803");
  EXPECT_THAT(mismatch.seen, AllOf(HasSubstr("570.124.06"), HasSubstr("580.95.05")));
  EXPECT_EQ(compat.id, "cuda-804");
  EXPECT_THAT(compat.seen, AllOf(HasSubstr("consumer"), HasSubstr("compat/libcuda.so.1")));
  EXPECT_THAT(compat.change, AllOf(HasSubstr("remove"), HasSubstr("update the driver")));
  EXPECT_EQ(fabric.id, "cuda-802");
  EXPECT_THAT(fabric.change, HasSubstr("nvidia-fabricmanager"));
  for (const Meaning& meaning : {mismatch, compat, fabric})
    EXPECT_THAT(meaning.change, Not(HasSubstr("a newer driver")));
}

TEST(Explain, Error35WithoutADriverIsNotAnOldOne) {
  FakeMachine fake;
  fake.add_cards(1);
  std::filesystem::remove(fake.scratch.folder() / "dev/nvidia0");
  fake.scratch.write(".dockerenv");

  const Meaning meaning =
      first(fake, "CUDA driver version is insufficient for CUDA runtime version");

  EXPECT_EQ(meaning.id, "cuda-35");
  EXPECT_THAT(meaning.change, HasSubstr("--gpus all"));
}

TEST(Explain, ANumberInALongerOneIsAnotherNumber) {
  EXPECT_EQ(first(FakeMachine(), "error 3500").id, "");
  EXPECT_EQ(first(FakeMachine(), "error 8021").id, "");
}

TEST(Explain, CudaIsNotAvailableIsWalkedInTheOrderInWhichItFails) {
  const std::string text = "torch.cuda.is_available() -> False";
  const FakeMachine without;
  FakeMachine cpu_wheel;
  cpu_wheel.add_cards(1);
  cpu_wheel.add_python();
  cpu_wheel.add_torch("2.9.1+cpu", "none");
  FakeMachine variable;
  variable.add_cards(1);
  variable.add_python();
  variable.add_torch("2.9.1+cu128", "12.8");
  variable.variables["CUDA_VISIBLE_DEVICES"] = "";

  EXPECT_THAT(first(without, text).seen, HasSubstr("no NVIDIA card"));
  EXPECT_THAT(first(cpu_wheel, text).seen, HasSubstr("built without CUDA"));
  EXPECT_THAT(first(variable, text).seen, HasSubstr("set but empty"));
}

TEST(Explain, EachUsualTextIsKnownWithALineToChange) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"RuntimeError: Expected all tensors to be on the same device, but found at least two "
       "devices, "
       "cuda:0 and cpu!",
       "two-devices"},
      {"RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) "
       "but found one of them on device: cpu",
       "first-device"},
      {"RuntimeError: Error(s) in loading state_dict for Net:\n Missing key(s) in state_dict: "
       "\"fc.weight\". Unexpected key(s) in state_dict: \"module.fc.weight\"",
       "module-prefix"},
      {"Missing key(s) in state_dict: \"head.weight\"", "other-keys"},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
       "cuda-out-of-memory"},
      {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "child-failed"},
      {"The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
       "address-in-use"},
      {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE",
       "watchdog"},
      {"RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
       "new one.",
       "unfinished-reduction"},
      {"Failed to initialize NVML: Unknown Error", "nvml-unknown"},
      {"RuntimeError: CUDA error: no kernel image is available for execution on the device",
       "no-kernel-image"},
      {"DataLoader worker (pid 7) is killed by signal: Bus error.", "shared-memory"},
      {"libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12",
       "nvjitlink"},
      {"libtorch_cuda.so: undefined symbol: ncclCommRegister", "nccl-symbol"},
      {"RuntimeError: operator torchvision::nms does not exist", "torchvision-nms"},
      {"CUDA error 100: no CUDA-capable device is detected", "cuda-100"},
      {"RuntimeError: CUDA unknown error - Error 999", "cuda-999"},
      {"/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "glibcxx"},
      {"undefined reference to `c10::Error::Error(c10::SourceLocation, "
       "std::__cxx11::basic_string<char>)'",
       "string-abi"},
      {"A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.0", "numpy-abi"},
      {"ERROR: No matching distribution found for torch==2.9.0+cu118", "pip-no-match"},
      {"could not select device driver \"\" with capabilities: [[gpu]]", "docker-gpus"},
  };
  const FakeMachine fake;

  for (const auto& [text, id] : kTexts) {
    const Meaning meaning = first(fake, text);
    EXPECT_EQ(meaning.id, id) << text;
    EXPECT_FALSE(meaning.change.empty()) << text;
  }
}

TEST(Explain, AnUnknownTextHasNoMeaning) {
  EXPECT_TRUE(explain_text("everything is fine", *FakeMachine().machine()).empty());
}

}  // namespace
}  // namespace yoke::doctor
