#include "yoke/stack/pairs.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::stack {
namespace {

using ::testing::HasSubstr;

Version version(const std::string& text) { return *Version::parse(text); }

Judgement pair(const std::string& torch, const std::string& torchvision) {
  return judge_pair(Matrix::built_in(), version(torch), "torchvision", version(torchvision));
}

TEST(Pairs, B102EachPairIsJudgedByVersionsAndCudaBuilds) {
  const Judgement good = pair("2.6.0", "0.21.0");
  const Judgement other = pair("2.5.1", "0.21.0");
  const Judgement minor = pair("2.6.0+cu124", "0.21.0+cu126");
  const Judgement major = pair("2.6.0+cu124", "0.21.0+cu118");
  const Judgement without = pair("2.6.0+cpu", "0.21.0+cu124");
  const Judgement unknown = pair("2.6.0", "0.99");

  EXPECT_EQ(good.severity, Severity::ok);
  EXPECT_EQ(other.severity, Severity::error);
  EXPECT_THAT(other.reason, HasSubstr("0.21 belongs to torch 2.6"));
  EXPECT_EQ(other.fix, "torchvision==0.20.1");
  EXPECT_EQ(minor.severity, Severity::warning);
  EXPECT_EQ(minor.fix, "torchvision==0.21.0+cu124");
  EXPECT_EQ(major.severity, Severity::error);
  EXPECT_THAT(major.reason, HasSubstr("CUDA 12 and CUDA 11"));
  EXPECT_EQ(without.severity, Severity::error);
  EXPECT_EQ(without.fix, "torchvision==0.21.0+cpu");
  EXPECT_FALSE(unknown.judged);
  EXPECT_NE(unknown.severity, Severity::ok);
  EXPECT_THAT(unknown.reason, HasSubstr("cannot judge"));
  EXPECT_EQ(unknown.fix, "torchvision==0.21.0");
}

TEST(Pairs, TheLastTorchaudioBesideLaterTorchIsANote) {
  const auto audio = [](const char* torch, const char* torchaudio) {
    return judge_pair(Matrix::built_in(), version(torch), "torchaudio", version(torchaudio));
  };

  EXPECT_EQ(audio("2.11.0", "2.11.0").severity, Severity::ok);
  EXPECT_EQ(audio("2.14.0", "2.11.0").severity, Severity::note);
  EXPECT_EQ(audio("2.9.1", "2.11.0").severity, Severity::error);
}

TEST(Pairs, B105AnOlderOrOtherMajorLibraryIsAnError) {
  EXPECT_EQ(judge_library("cuDNN", version("8.3.2"), version("8.0.3")).severity, Severity::error);
  EXPECT_EQ(judge_library("cuDNN", version("8.7.0"), version("8.9.2")).severity, Severity::ok);
  EXPECT_EQ(judge_library("cuDNN", version("8.9.2"), version("9.1.0")).severity, Severity::error);
}

TEST(Pairs, B109ThreeCudaNumbersAreThreeQuestions) {
  const CudaNumbers numbers{
      .nvcc = version("10.1"), .torch = version("11.3"), .driver = version("12.2")};

  EXPECT_EQ(judge_cuda_runtime(numbers).severity, Severity::ok);
  EXPECT_EQ(judge_cuda_compiler(numbers).severity, Severity::warning);
  EXPECT_THAT(judge_cuda_compiler(numbers).reason, HasSubstr("only for compiling extensions"));
}

TEST(Pairs, B109NumPyTwoNeedsTorch23) {
  const Matrix& matrix = Matrix::built_in();

  const Judgement clash = judge_numpy(matrix, version("2.2.2"), version("2.0.0"));

  EXPECT_EQ(clash.severity, Severity::error);
  EXPECT_EQ(clash.fix, "pip install 'numpy<2', or torch >= 2.3");
  EXPECT_EQ(judge_numpy(matrix, version("2.3.0"), version("2.0.0")).severity, Severity::ok);
  EXPECT_EQ(judge_numpy(matrix, version("2.2.2"), version("1.26.4")).severity, Severity::ok);
}

TEST(Pairs, B109APythonWithoutAWheelIsAnError) {
  const Matrix& matrix = Matrix::built_in();

  EXPECT_EQ(judge_python(matrix, version("2.4.0"), "3.13").severity, Severity::error);
  EXPECT_EQ(judge_python(matrix, version("2.4.0"), "3.12").severity, Severity::ok);
  EXPECT_EQ(judge_python(matrix, version("2.5.0"), "3.13").severity, Severity::note);
  EXPECT_FALSE(judge_python(matrix, version("2.15.0"), "3.13").judged);
}

}  // namespace
}  // namespace yoke::stack
