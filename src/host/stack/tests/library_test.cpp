#include "yoke/stack/library.hpp"

#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/core/error.hpp"
#include "yoke/stack/fake_elf.hpp"

namespace yoke::stack {
namespace {

using ::testing::ElementsAre;

CodeArchs archs_of(const std::string& bytes) {
  return code_archs(ElfFile::parse(std::as_bytes(std::span(bytes)), "test.so"));
}

constexpr Arch kTuring{7, 5};
constexpr Arch kAmpere{8, 0};
constexpr Arch kHopper{9, 0};

TEST(FatBinaries, WhatNearlyAllHoldIsWhatTheLibraryHas) {
  FakeElf library{.fat_binaries = std::vector<FakeFatBinary>(20, {{kTuring, kAmpere}, false})};
  library.fat_binaries.front().code.push_back(kHopper);

  const CodeArchs archs = archs_of(fake_elf(library));

  EXPECT_EQ(archs.binaries, 20U);
  EXPECT_THAT(archs.archs, ElementsAre(kTuring, kAmpere));
  EXPECT_THAT(archs.partly, ElementsAre(kHopper));
  EXPECT_FALSE(archs.ptx);
}

TEST(FatBinaries, PtxIsSeen) {
  const CodeArchs archs = archs_of(fake_elf({.fat_binaries = {{{kAmpere, kHopper}, true}}}));

  EXPECT_TRUE(archs.ptx);
  EXPECT_THAT(archs.archs, ElementsAre(kAmpere, kHopper));
}

TEST(FatBinaries, ALibraryWithoutThemHasNoCode) { EXPECT_EQ(archs_of(fake_elf({})).binaries, 0U); }

TEST(FatBinaries, ASizeThatLeadsOutOfTheSectionIsCorrupt) {
  std::string bytes = fake_elf({.fat_binaries = {{{kAmpere}, false}}});
  const std::size_t at = bytes.find("\x50\xed\x55\xba");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 9] = 1;  // 256 bytes more

  EXPECT_THROW(static_cast<void>(archs_of(bytes)), Error);
}

TEST(StringAbi, B110IsReadFromTheNamesOfALibrary) {
  const StringAbiNames before = string_abi_names(ElfFile::open(YOKE_STRING_ABI_0));
  const StringAbiNames since = string_abi_names(ElfFile::open(YOKE_STRING_ABI_1));
  const StringAbiNames own = string_abi_names(ElfFile::open("/proc/self/exe"));

  EXPECT_EQ(before.abi(), StringAbi::old_abi);
  EXPECT_EQ(since.abi(), StringAbi::new_abi);
  EXPECT_NE(own.abi(), StringAbi::old_abi);
}

TEST(StringAbi, NamesThatDoNotTellAreNotGuessedFrom) {
  const std::string bytes = fake_elf({.symbols = {"plain_c", "_ZN4Ssss3runEv", "_Z3runi"}});

  EXPECT_FALSE(string_abi_names(ElfFile::parse(std::as_bytes(std::span(bytes)), "t")).abi());
}

TEST(Versions, TheHighestThatIsNeededOrDefined) {
  const std::string bytes =
      fake_elf({.needed_versions = {{"libc.so.6", "GLIBC_2.4"}, {"libc.so.6", "GLIBC_2.28"}},
                .defined_versions = {"GLIBCXX_3.4.9", "GLIBCXX_3.4.29", "CXXABI_1.3"}});
  const ElfFile file = ElfFile::parse(std::as_bytes(std::span(bytes)), "t");

  EXPECT_EQ(highest_needed(file, "GLIBC_")->text(), "2.28");
  EXPECT_EQ(highest_defined(file, "GLIBCXX_")->text(), "3.4.29");
  EXPECT_FALSE(highest_needed(file, "NCCL_").has_value());
}

TEST(LibraryVersion, IsToldByNameTextOrHeader) {
  const Scratch scratch;
  const auto cudnn = scratch.write("sys/libcudnn.so.8.9.2");
  scratch.link("sys/libcudnn.so.8", "libcudnn.so.8.9.2");
  const auto nccl = scratch.write("nccl/lib/libnccl.so.2",
                                  fake_elf({.data = "NCCL version %s" + std::string(1, '\0') +
                                                    "NCCL version 2.27.5+cuda12.9"}));
  const auto wheel = scratch.write("cudnn/lib/libcudnn.so.9", fake_elf({}));
  scratch.write("cudnn/include/cudnn_version.h",
                "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n");
  const auto silent = scratch.write("other/libcudnn.so.9", fake_elf({}));

  EXPECT_EQ(library_version(scratch.folder() / "sys/libcudnn.so.8")->version.text(), "8.9.2");
  EXPECT_EQ(library_version(nccl)->version.text(), "2.27.5");
  EXPECT_EQ(library_version(wheel)->version.text(), "9.10.2");
  EXPECT_FALSE(library_version(silent).has_value());
}

TEST(Search, ARunPathOfTheOldKindComesBeforeTheVariableAndOneOfTheNewKindAfterIt) {
  const Scratch scratch;
  const std::string root = scratch.folder().string();
  scratch.write("site/nccl/lib/libnccl.so.2");
  scratch.write("opt/lib/libnccl.so.2");
  const auto old_kind =
      scratch.write("site/torch/lib/old.so", fake_elf({.rpath = "$ORIGIN/../../nccl/lib"}));
  const auto new_kind =
      scratch.write("site/torch/lib/new.so", fake_elf({.runpath = "$ORIGIN/../../nccl/lib"}));
  const auto winner = [&](const std::filesystem::path& file) {
    const auto places = search_places(ElfFile::open(file), "/opt/lib", scratch.folder());
    return find_library("libnccl.so.2", places).front();
  };

  EXPECT_EQ(winner(old_kind).from, "run path of old.so");
  EXPECT_EQ(winner(new_kind).from, "LD_LIBRARY_PATH");
  EXPECT_EQ(winner(new_kind).file, scratch.folder() / "opt/lib/libnccl.so.2");
}

TEST(Search, LinksToOneFileAreOneLibrary) {
  const Scratch scratch;
  scratch.write("usr/lib/libcudnn.so.8.9.2");
  scratch.link("usr/lib/libcudnn.so.8", "libcudnn.so.8.9.2");
  scratch.link("opt/libcudnn.so.8", (scratch.folder() / "usr/lib/libcudnn.so.8").string());

  const auto found = find_library("libcudnn.so.8", system_places("/opt", scratch.folder()));

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].from, "LD_LIBRARY_PATH");
}

TEST(Search, TheSystemsConfigurationIsRead) {
  const Scratch scratch;
  scratch.write("etc/ld.so.conf.d/cuda.conf", "# CUDA\n/usr/local/cuda/lib64\n");
  scratch.write("usr/local/cuda/lib64/libcudart.so.12");

  const auto found = find_library("libcudart.so.12", system_places("", scratch.folder()));

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].from, "/etc/ld.so.conf.d/cuda.conf");
}

}  // namespace
}  // namespace yoke::stack
