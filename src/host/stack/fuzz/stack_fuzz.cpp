// Feeds damaged input to the readers of room stack. Whatever the bytes, a reader returns or throws
// yoke::Error.
//
// The first byte chooses the reader: 0 ELF files, 1 versions, 2 requirements, 3 the matrix. With
// libFuzzer (clang -fsanitize=fuzzer, -DYOKE_LIBFUZZER) LLVMFuzzerTestOneInput is the target;
// otherwise main() mutates sound input for so many seconds:
//
//   stack_fuzz_test SECONDS [SEED]

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_loop.hpp"
#include "yoke/core/error.hpp"
#include "yoke/stack/fake_elf.hpp"
#include "yoke/stack/stack.hpp"

namespace yoke::stack {
namespace {

constexpr std::size_t kReaders = 4;

unsigned read_elf(std::string_view bytes) {
  const ElfFile file = ElfFile::parse(std::as_bytes(std::span(bytes)), "fuzz");
  unsigned sum = file.machine();
  for (const ElfNote& note : file.notes()) {
    for (const std::byte byte : note.bytes) sum += static_cast<unsigned>(byte);
  }
  for (const NeededVersion& needed : file.needed_versions())
    sum += static_cast<unsigned>(needed.version.size());
  sum += static_cast<unsigned>(file.defined_versions().size());
  sum += static_cast<unsigned>(string_abi_names(file).new_names);
  return sum + static_cast<unsigned>(code_archs(file).archs.size());
}

/// What was read must come out equal when its normal spelling is read.
void check_version(std::string_view text) {
  const auto version = Version::parse(text);
  if (!version) return;
  const auto again = Version::parse(version->normal());
  if (!again || *again != *version) std::abort();
}

unsigned read(std::size_t reader, std::string_view bytes) {
  switch (reader) {
    case 0: return read_elf(bytes);
    case 1: {
      check_version(bytes);
      const auto specifiers = Specifiers::parse(bytes);
      return specifiers && specifiers->allow(*Version::parse("2.9.1+cu126")) ? 1 : 0;
    }
    case 2: return Requirement::parse(bytes).has_value() ? 1 : 0;
    default: return static_cast<unsigned>(Matrix::parse(bytes, "fuzz").releases.size());
  }
}

}  // namespace
}  // namespace yoke::stack

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  [[maybe_unused]] volatile unsigned sum = 0;  // keeps the reads
  try {
    sum = yoke::stack::read(data[0] % yoke::stack::kReaders,
                            {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const yoke::Error&) {
    // Damaged input is an expected outcome; any other exception ends the fuzzer.
  }
  return 0;
}

#ifndef YOKE_LIBFUZZER

namespace yoke::stack {
namespace {

constexpr std::string_view kMatrix = R"({"schema": "yoke.matrix/1", "version": "1", "releases": [
  {"torch": "2.9", "month": "2025-10", "python": {"first": "3.10", "last": "3.14", "trial": []},
   "cxx": 17, "torchvision": "0.24", "torchaudio": null, "patches": {"2.9.0": {"torchvision": "0.24.0",
   "torchaudio": "none", "triton": null}}, "sources": [], "builds": [{"wheel": "cu126", "cuda": "12.6.3",
   "tier": null, "default": true, "cudnn": "9", "nccl": null, "sm": ["5.0"], "ptx": false, "abi": "new",
   "glibc": "2.28", "sources": [], "read": {"sm": "x"}}]}], "families": [{"cuda": "12", "floor": "525.60.13"}],
  "toolkits": [{"cuda": "12.6.3", "driver": null}], "cards": [{"name": "A", "sm": "8.0", "class": "consumer"}],
  "limits": [{"sm": "10.0", "cuda": "12.8", "driver": "570.26"}], "cudnn_limits": [{"cudnn": "9.11", "sm": "7.5"}],
  "numpy": [{"torch_before": "2.3"}], "pip": [{"pip": "20.3"}]})";

/// Sound inputs to begin with, each behind the byte that chooses its reader.
std::vector<std::string> seeds() {
  const FakeElf library{
      .soname = "libfuzz.so.1",
      .needed = {"libc.so.6"},
      .rpath = "$ORIGIN",
      .runpath = "/opt/lib",
      .symbols = {"_ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                  "_ZN3c1011LogAPIUsageERKSs"},
      .needed_versions = {{"libc.so.6", "GLIBC_2.28"}, {"libstdc++.so.6", "GLIBCXX_3.4"}},
      .defined_versions = {"A", "B_1.0"},
      .fat_binaries = {{{Arch{8, 0}}, true}, {{Arch{9, 0}}, false}},
      .data = "data",
      .note = "text"};
  std::vector<std::string> out{fake_elf(library), "1!2.9.0rc1.post2.dev3+cu118.x-4",
                               "Torch_X[a, b] >=2.8,!=2.9.*,~=2.9.1,<3 ; python_version < '3.13'",
                               std::string(kMatrix)};
  for (std::size_t i = 0; i < out.size(); ++i) out[i].insert(0, 1, static_cast<char>(i));
  return out;
}

constexpr std::string_view kTelling("\0\x01\x7F\x80\xFF.+-_!*=<>~,;[]@09arpv{}\"n", 30);

}  // namespace
}  // namespace yoke::stack

int main(int argc, char** argv) {
  using namespace yoke::stack;
  const std::vector<std::string> inputs = seeds();
  // Damage to what no reader takes in the first place would find nothing.
  for (std::size_t i = 0; i < inputs.size(); ++i)
    static_cast<void>(read(i, std::string_view(inputs[i]).substr(1)));
  return yoke::fuzz::run(argc, argv, inputs, kTelling,
                         std::array{"ELF files", "versions", "requirements", "matrices"});
}

#endif
