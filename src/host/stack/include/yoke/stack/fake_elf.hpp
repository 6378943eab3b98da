#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "yoke/stack/elf.hpp"
#include "yoke/stack/matrix.hpp"

namespace yoke::stack {

/// What a fat binary is to hold.
struct FakeFatBinary {
  std::vector<Arch> code{};
  bool ptx = false;
};

/// A shared library that is not there; for tests.
///
///   write_atomically(folder / "libnccl.so.2", fake_elf({.soname = "libnccl.so.2"}));
struct FakeElf {
  std::string soname{};
  std::vector<std::string> needed{};
  std::string rpath{};
  std::string runpath{};
  std::vector<std::string> symbols{};  ///< defined
  std::vector<NeededVersion> needed_versions{};
  std::vector<std::string> defined_versions{};
  std::vector<FakeFatBinary> fat_binaries{};
  std::string data{};  ///< its section .rodata
  std::string note{};  ///< content of one note of owner "yoke"
};

/// The bytes of such a library for x86-64, which ElfFile reads. No machine code is in it.
[[nodiscard]] std::string fake_elf(const FakeElf& library);

}  // namespace yoke::stack
