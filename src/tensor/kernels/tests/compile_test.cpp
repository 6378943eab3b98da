#include "compile.hpp"

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::kernels {
namespace {

const std::vector<std::string> kWide{"YOKE_TYPE=2", "YOKE_VECTOR=8"};

TEST(Compile, EverySourceCompilesForEveryTypeWithoutACard) {
  if (!can_compile()) GTEST_SKIP() << "libnvrtc is not installed: a CPU set of wheels";
  for (const KernelSource* source : {&batch_norm_source(), &max_pool_source()}) {
    const std::vector<std::vector<std::string>> types{kWide,
                                                      {"YOKE_TYPE=1", "YOKE_VECTOR=8"},
                                                      {"YOKE_TYPE=0", "YOKE_VECTOR=4"},
                                                      {"YOKE_TYPE=0", "YOKE_VECTOR=1"}};
    for (const auto& defines : types) {
      const std::string cubin = compile(*source, 90, defines);

      EXPECT_EQ(cubin.substr(1, 3), "ELF") << source->name << " " << defines[0];
    }
  }
}

TEST(Compile, TheStemCompilesForItsTwoTypes) {
  if (!can_compile()) GTEST_SKIP() << "libnvrtc is not installed: a CPU set of wheels";
  for (const char* type : {"YOKE_TYPE=1", "YOKE_TYPE=2"}) {
    EXPECT_EQ(compile(stem_fold_source(), 90, {type, "YOKE_VECTOR=8"}).substr(1, 3), "ELF");
  }
}

TEST(Compile, Sm80AndSm90GiveMachineCodeOfTheirOwn) {
  if (!can_compile()) GTEST_SKIP() << "libnvrtc is not installed: a CPU set of wheels";

  EXPECT_NE(compile(max_pool_source(), 80, kWide), compile(max_pool_source(), 90, kWide));
}

TEST(Compile, AFaultIsShownInTheCompilersWords) {
  if (!can_compile()) GTEST_SKIP() << "libnvrtc is not installed: a CPU set of wheels";
  const KernelSource faulty{"faulty", "__global__ void f() { nonsense; }", {}};

  try {
    (void)compile(faulty, 90, {});
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::internal);
    EXPECT_NE(error.message().find("nonsense"), std::string::npos) << error.message();
  }
}

TEST(Compile, AnUnknownCardIsRefused) {
  if (!can_compile()) GTEST_SKIP() << "libnvrtc is not installed: a CPU set of wheels";

  EXPECT_THROW((void)compile(max_pool_source(), 11, kWide), Error);
}

}  // namespace
}  // namespace yoke::kernels
