// Feeds damaged files to the readers of room archive. Whatever the bytes, a reader returns or
// throws yoke::Error.
//
// The first byte chooses the reader: 0 safetensors, 1 PyTorch's zip, 2 the pickle inside it (whose
// checksum would hide it from a mutated zip). With libFuzzer (clang -fsanitize=fuzzer,
// -DYOKE_LIBFUZZER) LLVMFuzzerTestOneInput is the target; otherwise main() mutates sound files for
// so many seconds:
//
//   archive_fuzz_test SECONDS [SEED]

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "../pickle_reader.hpp"
#include "../pickle_writer.hpp"
#include "fuzz_loop.hpp"
#include "yoke/archive/archive.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

using Bytes = std::span<const std::byte>;

enum class Reader : std::uint8_t { safetensors, zip, pickle };

/// The storages of the pickle that seeds() makes; another key has none.
Bytes record(std::string_view key) {
  static constexpr std::array<std::byte, 64> kBytes{};
  if (key == "0" || key == "1") return kBytes;
  return Bytes(kBytes).first(key == "2" ? 8 : 0);
}

/// Reads every byte that a tensor says it has, so that a sanitizer sees one that is not there.
unsigned touch(const Tensor& tensor) {
  unsigned sum = 0;
  for (const std::byte byte : reach(tensor)) sum += static_cast<unsigned>(byte);
  return sum;
}

unsigned touch(const Value& value) {
  unsigned sum = 0;
  if (const auto* tensor = value.get_if<Tensor>()) sum += touch(*tensor);
  if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : dict->entries) sum += touch(item);
  }
  if (value.get_if<List>() != nullptr || value.get_if<Tuple>() != nullptr) {
    for (const Value& item : value.items()) sum += touch(item);
  }
  return sum;
}

unsigned read(Reader reader, Bytes bytes) {
  switch (reader) {
    case Reader::safetensors: {
      unsigned sum = 0;
      for (const auto& named : read_safetensors(bytes, "fuzz").tensors) sum += touch(named.tensor);
      return sum;
    }
    case Reader::zip: return touch(read_pytorch(bytes, "fuzz"));
    case Reader::pickle: {
      const Source source{.bytes = bytes, .name = "fuzz"};
      return touch(read_pickle(source, bytes, record));
    }
  }
  return 0;
}

}  // namespace
}  // namespace yoke::archive

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke::archive;
  if (size == 0) return 0;
  [[maybe_unused]] volatile unsigned sum = 0;  // keeps the reads
  try {
    sum = read(static_cast<Reader>(data[0] % 3), std::as_bytes(std::span(data + 1, size - 1)));
  } catch (const yoke::Error&) {
    // A damaged file is an expected outcome; any other exception ends the fuzzer.
  }
  return 0;
}

#ifndef YOKE_LIBFUZZER

namespace yoke::archive {
namespace {

/// Sound files to begin with, each behind the byte that chooses its reader.
std::vector<std::string> seeds() {
  std::string pattern = (std::filesystem::temp_directory_path() / "yoke-fuzz-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  const Bytes bytes = std::as_bytes(std::span(numbers));
  const std::vector<NamedTensor> tensors{
      {"layer.weight", contiguous_tensor(Dtype::float32, {4, 4}, bytes)},
      {"layer.bias", contiguous_tensor(Dtype::bfloat16, {32}, bytes)},
      {"steps", contiguous_tensor(Dtype::int64, {}, bytes)},
      {"mask", contiguous_tensor(Dtype::boolean, {0, 3}, bytes)}};
  const Value checkpoint =
      Dict{{{"model", state_dict(tensors)},
            {"groups",
             List{{Dict{{{"lr", 0.1}, {"betas", Tuple{{0.9, 0.999}}}, {"params", List{{0, 1}}}}}}}},
            {"epoch", 3},
            {"big", std::int64_t{1} << 40},
            {"flag", true},
            {"none", Value()}}};
  write_safetensors(folder / "m.safetensors", tensors, {{"format", "pt"}});
  write_pytorch(folder / "m.pt", checkpoint);
  PickleWriter pickle;
  pickle.write(checkpoint);
  std::vector<std::string> files{core::read_file(folder / "m.safetensors"),
                                 core::read_file(folder / "m.pt"), pickle.finish()};
  for (std::size_t i = 0; i < files.size(); ++i) files[i].insert(0, 1, static_cast<char>(i));
  std::filesystem::remove_all(folder);
  return files;
}

/// Damage to a file that no reader takes in the first place would find nothing.
void check_seeds(const std::vector<std::string>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    (void)read(static_cast<Reader>(i), std::as_bytes(std::span(files[i])).subspan(1));
  }
}

constexpr std::string_view kTelling("\0\x01\x7F\x80\xFF(.}]RtQqhue{[\"0", 20);

}  // namespace
}  // namespace yoke::archive

int main(int argc, char** argv) {
  using namespace yoke::archive;
  const std::vector<std::string> inputs = seeds();
  check_seeds(inputs);
  return yoke::fuzz::run(argc, argv, inputs, kTelling,
                         std::array{"safetensors", "zip files", "pickles"});
}

#endif
