#include "yoke/doctor/image.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "yoke/core/error.hpp"
#include "yoke/stack/labels.hpp"

namespace yoke::doctor {
namespace {

using ::testing::HasSubstr;

using Parts = std::vector<std::pair<std::string, std::string>>;

/// An OCI layout of one image whose configuration has these labels.
Parts layout(const std::string& labels) {
  return {{"oci-layout", R"({"imageLayoutVersion": "1.0.0"})"},
          {"index.json", R"({"manifests": [
             {"digest": "sha256:aa", "platform": {"architecture": "arm64", "os": "linux"}},
             {"digest": "sha256:bb", "platform": {"architecture": "amd64", "os": "linux"}}]})"},
          {"blobs/sha256/bb", R"({"config": {"digest": "sha256:cc"}, "layers": []})"},
          {"blobs/sha256/cc", R"({"config": {"Labels": )" + labels + "}}"}};
}

std::string tar_of(const Parts& parts) {
  std::string out;
  for (const auto& [name, bytes] : parts) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    char size[12];
    std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(bytes.size()));
    header.replace(124, 11, size);
    header.replace(257, 5, "ustar");
    out += header + bytes;
    out.append((512 - bytes.size() % 512) % 512, '\0');
  }
  return out.append(1024, '\0');
}

std::filesystem::path folder_of(const stack::Scratch& scratch, const Parts& parts) {
  for (const auto& [name, bytes] : parts) scratch.write("image/" + name, bytes);
  return scratch.folder() / "image";
}

std::string refusal(const std::filesystem::path& image) try {
  static_cast<void>(read_image_labels(image));
  return "";
} catch (const Error& error) {
  return error.message();
}

TEST(Image, LabelsAreReadFromAFolderAndFromATar) {
  const stack::Scratch scratch;
  const Parts parts = layout(R"({"yoke.stack.torch": "2.9.1+cu128"})");
  const auto tar = scratch.write("image.tar", tar_of(parts));

  EXPECT_EQ(read_image_labels(folder_of(scratch, parts)).at("yoke.stack.torch"), "2.9.1+cu128");
  EXPECT_EQ(read_image_labels(tar).at("yoke.stack.torch"), "2.9.1+cu128");
}

TEST(Image, DockersArchiveIsReadToo) {
  const stack::Scratch scratch;
  const auto tar =
      scratch.write("image.tar", tar_of({{"manifest.json", R"([{"Config": "abc.json"}])"},
                                         {"abc.json", R"({"config": {"Labels": {"a": "b"}}})"}}));

  EXPECT_EQ(read_image_labels(tar).at("a"), "b");
}

TEST(Image, WhatIsNoImageIsRefusedWithThePart) {
  const stack::Scratch scratch;
  Parts cut = layout("{}");
  cut.pop_back();
  Parts outside = layout("{}");
  outside[2].second = R"({"config": {"digest": "sha256:../../../etc/passwd"}})";
  const auto text = scratch.write("text.tar", std::string(2000, 'x'));

  EXPECT_THAT(refusal(scratch.folder() / "none"), HasSubstr("no such file"));
  EXPECT_THAT(refusal(text), HasSubstr("not a tar file"));
  EXPECT_THAT(refusal(scratch.write("a.tar", tar_of(cut))), HasSubstr("no blobs/sha256/cc"));
  EXPECT_THAT(refusal(scratch.write("b.tar", tar_of(outside))), HasSubstr("is no sha256"));
  EXPECT_THAT(refusal(scratch.write("c.tar", tar_of({{"index.json", "{}"}}))),
              HasSubstr("another form"));
  EXPECT_THAT(refusal(scratch.write("d.tar", tar_of({{"index.json", "{"}}))),
              HasSubstr("not JSON"));
}

TEST(Image, IsJudgedByItsLabelsAndThisMachine) {
  const stack::Matrix& matrix = stack::Matrix::built_in();
  const auto version = *stack::Version::parse("2.11.0");
  const Labels labels = stack::to_labels(stack::labels_of(
      *matrix.patch(version), *stack::find_build(*matrix.release(version), "cu130")));
  FakeMachine fits;
  fits.add_cards(8);
  FakeMachine old;
  old.add_cards(1, "NVIDIA GeForce GTX 1080", "470.82.01");

  const Report good = judge_image(labels, *fits.machine());
  const Report bad = judge_image(labels, *old.machine());
  const Report unknown = judge_image({}, *fits.machine());

  EXPECT_EQ(good.verdict(), Verdict::ok);
  EXPECT_EQ(bad.verdict(), Verdict::cannot_train);
  EXPECT_THAT(bad.results[1].finding.text, HasSubstr("470.82.01 < needed 580.65.06"));
  EXPECT_THAT(bad.results[2].finding.text, HasSubstr("no code for sm_61"));
  EXPECT_EQ(unknown.verdict(), Verdict::warning);
}

TEST(Labels, ComeBackAsTheyWere) {
  const stack::StackLabels stack{.torch = "2.9.1+cu128",
                                 .cuda = "12.8.1",
                                 .abi = stack::StringAbi::new_abi,
                                 .archs = std::vector<stack::Arch>{{7, 5}, {12, 0}},
                                 .ptx = false};

  EXPECT_EQ(stack::to_labels(stack::from_labels(stack::to_labels(stack))), stack::to_labels(stack));
  EXPECT_THROW(static_cast<void>(stack::from_labels({{"yoke.stack.sm", "fast"}})), Error);
  EXPECT_THROW(static_cast<void>(stack::from_labels({{"yoke.stack.cuda", "new"}})), Error);
}

}  // namespace
}  // namespace yoke::doctor
