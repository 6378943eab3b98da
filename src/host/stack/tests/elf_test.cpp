#include "yoke/stack/elf.hpp"

#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/core/error.hpp"
#include "yoke/stack/fake_elf.hpp"

namespace yoke::stack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FakeElf sample() {
  return {.soname = "libsample.so.1",
          .needed = {"libc.so.6", "libnccl.so.2"},
          .rpath = "$ORIGIN/../lib:/opt/lib",
          .runpath = "",
          .symbols = {"first", "second"},
          .needed_versions = {{"libc.so.6", "GLIBC_2.28"}, {"libstdc++.so.6", "GLIBCXX_3.4.30"}},
          .defined_versions = {"libsample.so.1", "SAMPLE_1.0"},
          .fat_binaries = {},
          .data = "some data",
          .note = "note text"};
}

ElfFile parsed(const std::string& bytes) {
  return ElfFile::parse(std::as_bytes(std::span(bytes)), "test.so");
}

Code refusal(const std::string& bytes) try {
  const ElfFile file = parsed(bytes);
  static_cast<void>(file.needed_versions());
  static_cast<void>(file.defined_versions());
  static_cast<void>(file.notes());
  file.symbols([](std::string_view, bool) { return true; });
  return Code::internal;
} catch (const Error& error) {
  EXPECT_THAT(error.message(), HasSubstr("test.so"));
  return error.code();
}

TEST(Elf, TellsNamesPathsAndVersions) {
  const std::string bytes = fake_elf(sample());

  const ElfFile file = parsed(bytes);

  EXPECT_EQ(file.machine(), 62);
  EXPECT_EQ(file.soname(), "libsample.so.1");
  EXPECT_THAT(file.needed(), ElementsAre("libc.so.6", "libnccl.so.2"));
  EXPECT_THAT(file.rpath(), ElementsAre("$ORIGIN/../lib", "/opt/lib"));
  EXPECT_TRUE(file.runpath().empty());
  ASSERT_EQ(file.needed_versions().size(), 2U);
  EXPECT_EQ(file.needed_versions()[1].library, "libstdc++.so.6");
  EXPECT_EQ(file.needed_versions()[1].version, "GLIBCXX_3.4.30");
  EXPECT_THAT(file.defined_versions(), ElementsAre("libsample.so.1", "SAMPLE_1.0"));
}

TEST(Elf, TellsSymbolsSectionsAndNotes) {
  const std::string bytes = fake_elf(sample());
  const ElfFile file = parsed(bytes);

  std::vector<std::string> names;
  file.symbols([&](std::string_view name, bool defined) {
    EXPECT_TRUE(defined);
    names.emplace_back(name);
    return true;
  });

  EXPECT_THAT(names, ElementsAre("first", "second"));
  EXPECT_EQ(file.section(".rodata")->size(), 9U);
  EXPECT_FALSE(file.section(".text").has_value());
  ASSERT_EQ(file.notes().size(), 1U);
  EXPECT_EQ(file.notes()[0].owner, "yoke");
  EXPECT_EQ(file.notes()[0].bytes.size(), 9U);
}

TEST(Elf, ReadsARealProgram) {
  const ElfFile file = ElfFile::open("/proc/self/exe");

  EXPECT_FALSE(file.needed().empty());
  EXPECT_FALSE(file.needed_versions().empty());
}

TEST(Elf, WhatIsNoElfFileIsCorrupt) {
  EXPECT_EQ(refusal(""), Code::corrupt_data);
  EXPECT_EQ(refusal(std::string(200, 'x')), Code::corrupt_data);
  EXPECT_EQ(refusal("#!/bin/sh\n" + std::string(200, ' ')), Code::corrupt_data);
}

TEST(Elf, ThirtyTwoBitsAreUnsupported) {
  std::string bytes = fake_elf(sample());
  bytes[4] = 1;

  EXPECT_EQ(refusal(bytes), Code::unsupported);
}

TEST(Elf, EveryCutFileIsRefusedOrReadWithoutLeavingIt) {
  const std::string whole = fake_elf(sample());
  ASSERT_EQ(refusal(whole), Code::internal) << "the whole file is read";

  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(refusal(whole.substr(0, size)), Code::corrupt_data) << size;
  }
}

TEST(Elf, AMissingOrEmptyFileIsNamed) {
  const Scratch scratch;
  const auto empty = scratch.write("empty.so");

  EXPECT_THROW(static_cast<void>(ElfFile::open(scratch.folder() / "none.so")), Error);
  EXPECT_THROW(static_cast<void>(ElfFile::open(empty)), Error);
  EXPECT_THROW(static_cast<void>(ElfFile::open(scratch.folder())), Error);
}

}  // namespace
}  // namespace yoke::stack
