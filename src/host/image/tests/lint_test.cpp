#include "yoke/image/lint.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/files.hpp"

namespace yoke::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kTorn =
    "FROM nvidia/cuda:11.8-devel-ubuntu20.04\n"
    "RUN apt-get update && apt-get install -y python3-pip\n"
    "RUN pip3 install torch==2.9.0+cu118 torchvision==0.14.0+cu118\n";

std::vector<std::string> faults(const std::string& text, FileKind kind = FileKind::dockerfile) {
  std::vector<std::string> ids;
  for (const Finding& finding : lint(text, kind)) {
    if (finding.severity != Severity::ok) ids.push_back(finding.id);
  }
  return ids;
}

TEST(Lint, NamesTheEightFaultsOfTheTypicalFileAndTheOneThatIsNone) {
  const std::vector<Finding> findings = lint(kTorn, FileKind::dockerfile);

  EXPECT_THAT(faults(kTorn),
              UnorderedElementsAre("image-tag", "double-cuda", "torch-build", "torchvision-build",
                                   "torchvision-pair", "python", "pip", "index"));
  std::vector<std::string> none;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::ok) none.push_back(finding.id);
    EXPECT_FALSE(finding.fix.empty()) << finding.id;
    EXPECT_EQ(
        finding.line,
        finding.id == "image-tag" || finding.id == "double-cuda" || finding.id == "glibc" ? 1 : 3)
        << finding.id;
  }
  EXPECT_THAT(none, ElementsAre("glibc"));
}

TEST(Lint, TheTypicalFileHasTwoCorrections) {
  const std::string cuda = corrected(kTorn, FileKind::dockerfile, Keep::cuda);
  const std::string torch = corrected(kTorn, FileKind::dockerfile, Keep::torch);

  EXPECT_EQ(cuda,
            "FROM nvidia/cuda:11.8.0-base-ubuntu22.04\n"
            "RUN apt-get update && apt-get install -y python3-pip\n"
            "RUN pip3 install --extra-index-url https://download.pytorch.org/whl/cu118 "
            "torch==2.7.1+cu118 torchvision==0.22.1+cu118\n");
  EXPECT_EQ(torch,
            "FROM nvidia/cuda:12.6.3-base-ubuntu22.04\n"
            "RUN apt-get update && apt-get install -y python3-pip\n"
            "RUN pip3 install --extra-index-url https://download.pytorch.org/whl/cu126 "
            "torch==2.9.1+cu126 torchvision==0.24.1+cu126\n");
  EXPECT_THAT(faults(cuda), IsEmpty());
  EXPECT_THAT(faults(torch), IsEmpty());
}

/// The files of a folder of the corpus, in order of their names.
std::vector<std::filesystem::path> corpus(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(YOKE_LINT_CORPUS) + "/" + folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(LintCorpus, FindsTheNamedFaultOfEachFaultyFileAndNoOther) {
  const auto files = corpus("faulty");

  ASSERT_EQ(files.size(), 30u);
  for (const auto& file : files) {
    const std::string name = file.filename().string();
    const std::string text = core::read_file(file);
    EXPECT_THAT(faults(text, file_kind(name, text)), ElementsAre(name.substr(0, name.find('.'))))
        << name;
  }
}

TEST(LintCorpus, FindsNothingInGoodFiles) {
  const auto files = corpus("good");

  ASSERT_EQ(files.size(), 30u);
  for (const auto& file : files) {
    const std::string text = core::read_file(file);
    EXPECT_THAT(faults(text, file_kind(file.string(), text)), IsEmpty()) << file;
  }
}

struct OneFault {
  const char* id;
  const char* text;
  FileKind kind = FileKind::dockerfile;
};

class LintRule : public ::testing::TestWithParam<OneFault> {};

TEST_P(LintRule, NamesItsFaultAlone) {
  EXPECT_THAT(faults(GetParam().text, GetParam().kind), ElementsAre(GetParam().id));
}

INSTANTIATE_TEST_SUITE_P(
    Others, LintRule,
    ::testing::Values(
        OneFault{"torch-version", "torch==2.9.7\n", FileKind::requirements},
        OneFault{"wheel-pin", "torch==2.6.0\nnvidia-nccl-cu12==2.20.5\n", FileKind::requirements},
        OneFault{"hashes", "a==1 --hash=sha256:0\nb==1\n", FileKind::requirements},
        OneFault{"moving-base", "FROM pytorch/pytorch\n"},
        OneFault{
            "conda",
            "FROM continuumio/miniconda3:24.9.2-0\nRUN conda install pytorch=2.6 -c pytorch\n"},
        OneFault{"aarch64-cpu",
                 "FROM --platform=linux/arm64 python:3.12\nRUN pip install torch==2.9.1\n"},
        OneFault{"compat-library", "FROM ubuntu:22.04\nRUN apt-get install -y cuda-compat-12-8\n"},
        OneFault{"world-writable", "FROM ubuntu:22.04\nRUN mkdir /w && chmod -R 777 /w\n"},
        OneFault{"driver-inside", "FROM ubuntu:22.04\nCOPY libcuda.so.550.54.14 /usr/lib/\n"},
        OneFault{"secret", "FROM ubuntu:22.04\nCOPY id_rsa /root/.ssh/id_rsa\n"},
        OneFault{"secret",
                 "FROM python:3.12\nRUN pip install -i https://u:p@example.org/simple a\n"},
        OneFault{"torch-build", "torch==2.9.1\n-i https://download.pytorch.org/whl/cu121\n",
                 FileKind::requirements},
        OneFault{"index", "torch==2.6.0+cu124\n-i https://download.pytorch.org/whl/cu121\n",
                 FileKind::requirements},
        OneFault{"glibc",
                 "FROM centos:7\nRUN uv venv --python 3.12 && uv pip install torch==2.9.1\n"}));

TEST(Lint, BinaryBytesAreOneFinding) {
  const auto findings = lint(std::string("\x7f"
                                         "ELF\0\1",
                                         6),
                             FileKind::dockerfile);

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "not-text");
  EXPECT_THAT(findings[0].reason, HasSubstr("not a text file"));
}

TEST(Lint, KnowsKindsOfFiles) {
  EXPECT_EQ(file_kind("a/Dockerfile.gpu", ""), FileKind::dockerfile);
  EXPECT_EQ(file_kind("requirements-dev.txt", ""), FileKind::requirements);
  EXPECT_EQ(file_kind("x", "# c\nFROM a\n"), FileKind::dockerfile);
  EXPECT_EQ(file_kind("x", "torch==2.9.1\n"), FileKind::requirements);
}

}  // namespace
}  // namespace yoke::image
