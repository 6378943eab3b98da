#include "yoke/stack/matrix.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"

namespace yoke::stack {
namespace {

using ::testing::HasSubstr;

/// The message with which a text is refused; empty if it is not.
std::string refusal(const std::string& text) try {
  static_cast<void>(Matrix::parse(text, "test.json"));
  return "";
} catch (const Error& error) {
  EXPECT_EQ(error.code(), Code::corrupt_data);
  return error.message();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Matrix, TheBuiltInOneIsTheFile) {
  const Matrix& built_in = Matrix::built_in();
  const Matrix file = Matrix::read(YOKE_MATRIX);

  EXPECT_EQ(built_in.version, file.version);
  EXPECT_EQ(built_in.releases.size(), 17U);
  EXPECT_EQ(file.releases.size(), 17U);
}

TEST(Matrix, KnowsReleasesPatchesAndBuilds) {
  const Matrix& matrix = Matrix::built_in();

  const Release* release = matrix.release(*Version::parse("2.9.1+cu126"));
  ASSERT_NE(release, nullptr);
  const Build* build = find_build(*release, "cu126");
  ASSERT_NE(build, nullptr);
  EXPECT_EQ(build->cudnn, "9.10.2.21");
  EXPECT_EQ(build->abi, StringAbi::new_abi);
  EXPECT_EQ(build->cuda_series(), "12.6");
  EXPECT_EQ(matrix.patch(*Version::parse("2.9.1+cu126"))->torchvision, "0.24.1");
  EXPECT_EQ(matrix.release_of_torchvision(*Version::parse("0.14.0"))->torch.text(), "1.13");
  EXPECT_EQ(matrix.release(*Version::parse("3.0")), nullptr);
}

TEST(Matrix, KeepsNotCheckedApartFromNone) {
  const Matrix& matrix = Matrix::built_in();

  EXPECT_EQ(matrix.patch(*Version::parse("2.14.0"))->torchaudio, kNone);
  EXPECT_FALSE(matrix.release(*Version::parse("2.15"))->patches.has_value());
  EXPECT_EQ(shown(Fact{}), "not checked");
  EXPECT_EQ(shown(Fact{"none"}), "none");
}

TEST(Matrix, FindsCardsByWholeWordsOfTheirNames) {
  const Matrix& matrix = Matrix::built_in();

  EXPECT_EQ(matrix.card("NVIDIA A100-SXM4-80GB")->arch.sm(), "sm_80");
  EXPECT_EQ(matrix.card("NVIDIA A10")->arch.sm(), "sm_86");
  EXPECT_EQ(matrix.card("NVIDIA H200")->kind, CardClass::data_centre);
  EXPECT_EQ(matrix.card("NVIDIA GeForce RTX 5090")->kind, CardClass::consumer);
  EXPECT_EQ(matrix.card("NVIDIA H2000"), nullptr);
}

TEST(Arch, IsReadInAllItsSpellings) {
  for (const char* text : {"12.0", "sm_120", "sm_120a", "compute_120", "120"}) {
    EXPECT_EQ(Arch::parse(text), (Arch{.major = 12, .minor = 0})) << text;
  }
  for (const char* text : {"", "sm_", "x", "9", "9.", ".9", "9.10", "1000"}) {
    EXPECT_FALSE(Arch::parse(text).has_value()) << text;
  }
}

TEST(Matrix, AFaultyFileIsRefusedByItsEntry) {
  const std::string text = core::read_file(YOKE_MATRIX);

  EXPECT_EQ(refusal(text), "");
  EXPECT_THAT(refusal("{"), HasSubstr("test.json"));
  EXPECT_THAT(refusal("[]"), HasSubstr("test.json"));
  EXPECT_THAT(refusal(replaced(text, "yoke.matrix/1", "yoke.matrix/9")), HasSubstr("schema"));
  EXPECT_THAT(refusal(replaced(text, "\"abi\": \"old\"", "\"abi\": \"odd\"")),
              HasSubstr("torch 1.13 builds: abi is neither old, new nor null"));
  EXPECT_THAT(refusal(replaced(text, "\"cudnn\": \"none\"", "\"cudnn\": 9")), HasSubstr("cudnn"));
  EXPECT_THAT(refusal(replaced(text, "\"wheel\": \"cpu\", ", "")), HasSubstr("wheel is missing"));
}

}  // namespace
}  // namespace yoke::stack
