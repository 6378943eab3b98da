#include "yoke/stack/inventory.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/stack/fake_elf.hpp"

namespace yoke::stack {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSite = "venv/lib/python3.12/site-packages/";

void add_torch(const Scratch& scratch, const std::string& site, const std::string& version) {
  scratch.write(site + "torch/version.py",
                "from typing import Optional\n__version__ = '" + version +
                    "'\ncuda: Optional[str] = '12.8'\ncuda_other = 'x'\n");
}

Inventory inventory_of(const Scratch& scratch, const std::string& site) {
  return take_inventory({.version = "3.12", .folders = {scratch.folder() / site}});
}

TEST(Python, AVirtualEnvironmentIsFoundByItsVariable) {
  const Scratch scratch;
  scratch.write("venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.4\n");
  scratch.write(std::string(kSite) + "x");

  const PythonPlace python =
      find_python({{"VIRTUAL_ENV", "/venv"}, {"PATH", "/usr/bin"}}, scratch.folder());

  EXPECT_EQ(python.version, "3.12");
  EXPECT_THAT(python.folders, ElementsAre(scratch.folder() / "venv/lib/python3.12/site-packages"));
}

TEST(Python, TheSystemsLooksIntoTheUsersFolderFirst) {
  const Scratch scratch;
  scratch.write("usr/bin/python3.11");
  scratch.link("usr/bin/python3", "python3.11");
  scratch.write("home/a/.local/lib/python3.11/site-packages/x");
  scratch.write("usr/lib/python3/dist-packages/x");
  scratch.write("extra/x");

  const PythonPlace python =
      find_python({{"PATH", "/nowhere:/usr/bin"}, {"HOME", "/home/a"}, {"PYTHONPATH", "/extra"}},
                  scratch.folder());

  EXPECT_EQ(python.version, "3.11");
  EXPECT_THAT(python.folders,
              ElementsAre(scratch.folder() / "extra",
                          scratch.folder() / "home/a/.local/lib/python3.11/site-packages",
                          scratch.folder() / "usr/lib/python3/dist-packages"));
}

TEST(Python, AMachineWithoutOneHasNone) {
  const Scratch scratch;

  EXPECT_TRUE(find_python({{"PATH", "/usr/bin"}}, scratch.folder()).program.empty());
}

TEST(Inventory, PackagesAndTorchAreReadFromTheirFiles) {
  const Scratch scratch;
  add_torch(scratch, kSite, "2.9.1+cu128");
  scratch.write(std::string(kSite) + "torch-2.9.1+cu128.dist-info/METADATA",
                "Name: torch\nRequires-Dist: nvidia-cudnn-cu12==9.10.2.21; platform_system == "
                "\"Linux\"\nRequires-Dist: nvidia-nccl-cu12 (==2.27.5)\n\nRequires-Dist: not==1\n");
  scratch.write(std::string(kSite) + "Nvidia_NCCL_cu12-2.27.5.dist-info/RECORD",
                "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n");
  scratch.write(std::string(kSite) + "requests-2.0.dist-info/METADATA", "");

  const Inventory inventory = inventory_of(scratch, kSite);

  ASSERT_NE(inventory.torch(), nullptr);
  EXPECT_EQ(inventory.torch()->version->text(), "2.9.1+cu128");
  EXPECT_EQ(inventory.torch()->cuda, "12.8");
  ASSERT_NE(inventory.find("nvidia-nccl-cu12"), nullptr);
  EXPECT_TRUE(records_file(*inventory.find("nvidia-nccl-cu12"), "nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_EQ(inventory.find("requests"), nullptr);
  EXPECT_EQ(requirements_of(*inventory.find("torch")).size(), 2U);
  EXPECT_EQ(built_with(Matrix::built_in(), inventory, "cudnn")->version.text(), "9.10.2.21");
  EXPECT_EQ(built_with(Matrix::built_in(), inventory, "nccl")->told_by, "torch's pins");
}

TEST(Inventory, WithoutPinsTheMatrixSaysWithWhatTorchWasBuilt) {
  const Scratch scratch;
  add_torch(scratch, kSite, "2.9.1+cu128");

  const auto nccl = built_with(Matrix::built_in(), inventory_of(scratch, kSite), "nccl");

  ASSERT_TRUE(nccl.has_value());
  EXPECT_EQ(nccl->version.text(), "2.27.5");
  EXPECT_EQ(nccl->told_by, "the matrix");
}

TEST(Inventory, WhatCannotBeReadIsSaid) {
  const Scratch scratch;
  scratch.write(std::string(kSite) + "torch/version.py", "import os\n");

  const Inventory inventory = inventory_of(scratch, kSite);

  ASSERT_NE(inventory.torch(), nullptr);
  EXPECT_FALSE(inventory.torch()->version.has_value());
  EXPECT_THAT(inventory.unread, ElementsAre(HasSubstr("version.py")));
}

TEST(Inventory, LibrariesTellArchitecturesAbiAndNeeds) {
  const Scratch scratch;
  const std::string lib = std::string(kSite) + "torch/lib/";
  add_torch(scratch, kSite, "2.9.1+cu128");
  scratch.write(
      lib + "libc10.so",
      fake_elf({.symbols = {"_ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcE"
                            "SaIcEEE"},
                .needed_versions = {{"libstdc++.so.6", "GLIBCXX_3.4.22"}}}));
  scratch.write(lib + "libtorch_cpu.so",
                fake_elf({.needed_versions = {{"libc.so.6", "GLIBC_2.28"}}}));
  scratch.write(lib + "libtorch_cuda.so",
                fake_elf({.fat_binaries = {{{Arch{8, 0}, Arch{9, 0}}, false}}}));

  const TorchLibraries libraries = read_torch_libraries(*inventory_of(scratch, kSite).torch());

  EXPECT_TRUE(libraries.unread.empty());
  EXPECT_THAT(libraries.code->archs, ElementsAre(Arch{8, 0}, Arch{9, 0}));
  EXPECT_EQ(libraries.abi, StringAbi::new_abi);
  EXPECT_EQ(libraries.glibc->text(), "2.28");
  EXPECT_EQ(libraries.glibcxx->text(), "3.4.22");
}

TEST(Inventory, AMissingOrDamagedLibraryIsSaidAndNothingGuessed) {
  const Scratch scratch;
  add_torch(scratch, kSite, "2.9.1+cu128");
  scratch.write(std::string(kSite) + "torch/lib/libc10.so", "not a library");

  const TorchLibraries libraries = read_torch_libraries(*inventory_of(scratch, kSite).torch());

  EXPECT_FALSE(libraries.code.has_value());
  EXPECT_FALSE(libraries.abi.has_value());
  EXPECT_THAT(libraries.unread, Contains(HasSubstr("libc10.so")));
  EXPECT_THAT(libraries.unread, Contains(HasSubstr("libtorch_cuda.so")));
}

}  // namespace
}  // namespace yoke::stack
