// Feeds damaged files to the readers of room image. Whatever the bytes, a reader returns or throws
// yoke::Error; a corrected Dockerfile is linted again.
//
// The first byte chooses the reader. With libFuzzer (clang -fsanitize=fuzzer, -DYOKE_LIBFUZZER)
// LLVMFuzzerTestOneInput is the target; otherwise main() mutates sound files for so many seconds:
//
//   image_fuzz_test SECONDS [SEED]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/image/image.hpp"

namespace yoke::image {
namespace {

enum class Reader : std::uint8_t { dockerfile, requirements, cdi, linker_cache, lock, report };
constexpr std::size_t kReaders = 6;

std::size_t read(Reader reader, std::string_view text) {
  switch (reader) {
    case Reader::dockerfile: return corrected(text, FileKind::dockerfile, Keep::cuda).size();
    case Reader::requirements: return corrected(text, FileKind::requirements, Keep::torch).size();
    case Reader::cdi: return write_cdi(read_cdi(text, "fuzz")).size();
    case Reader::lock: return write_lock(read_lock(text, "fuzz"), ImageParts::built_in()).size();
    case Reader::report:
      return judge_extension(text, R"({"torch":"2.9.1"})", {"a"}).lock.wheels.size();
    case Reader::linker_cache: return write_linker_cache(read_linker_cache(text, "fuzz")).size();
  }
  return 0;
}

}  // namespace
}  // namespace yoke::image

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke::image;
  if (size == 0) return 0;
  [[maybe_unused]] volatile std::size_t sum = 0;  // keeps the reads
  try {
    sum = read(static_cast<Reader>(data[0] % kReaders),
               {reinterpret_cast<const char*>(data + 1), size - 1});
  } catch (const yoke::Error&) {
    // A damaged file is an expected outcome; any other exception ends the fuzzer.
  }
  return 0;
}

#ifndef YOKE_LIBFUZZER

namespace yoke::image {
namespace {

/// Sound files to begin with, one for each reader.
std::array<std::string, kReaders> seeds() {
  return {
      "# escape=`\nARG C=11.8\nFROM nvidia/cuda:${C}-devel-ubuntu20.04 AS a\nENV A=\"b c\" "
      "LD_LIBRARY_PATH=/usr/local/cuda\n"
      "RUN <<EOF\npip3 install torch==2.9.0+cu118 `\n torchvision==0.14.0+cu118\nEOF\n"
      "RUN [\"pip\", \"install\", \"torchaudio\"]\nFROM a\nCOPY --from=a id_rsa /\n",
      "-i https://download.pytorch.org/whl/cu118\ntorch[x]==2.9.0+cu118 ; python_version<'3' # c\n"
      "torchvision>=0.14,<0.15 --hash=sha256:0 \\\n --hash=sha256:1\nnumpy\na @ "
      "https://e.org/a.whl\n",
      R"({"cdiVersion":"1.1.0","kind":"nvidia.com/gpu","annotations":{"a":"b"},"devices":[{"name":"0","containerEdits":)"
      R"({"deviceNodes":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0,"fileMode":438}]}}],"containerEdits":)"
      R"({"env":["A=b"],"mounts":[{"hostPath":"/a","containerPath":"/b","options":["ro"]}],"additionalGids":[44]}})",
      write_linker_cache({{"libcuda.so.1", "/usr/lib/libcuda.so.1", 0x303, 0},
                          {"libc.so.6", "/lib/libc.so.6", 0x303, 0}}),
      "# torch 2.9.1+cu128\n# python 3.11\ntorch==2.9.1 \\\n    --hash=sha256:" +
          std::string(64, 'a') + "\nnumpy==2.3.0 --hash=sha256:" + std::string(64, 'b') + "\n",
      R"({"install":[{"metadata":{"name":"Pear","version":"1.0","requires_dist":["torch>=2.12; extra == 'x'","a<2"]},)"
      R"("download_info":{"archive_info":{"hashes":{"sha256":"0"}}}},{"metadata":{"name":"torch","version":"2.12.0"},)"
      R"("download_info":{"archive_info":{"hashes":{"sha256":"1"}}}}]})"};
}

/// One to eight small damages.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string damage(std::string bytes) {
    for (std::size_t times = 1 + below(8); times > 0; --times) once(bytes);
    return bytes;
  }

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void once(std::string& bytes) {
    if (bytes.empty()) return bytes.push_back(any());
    const std::size_t at = below(bytes.size());
    const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
      case 1: bytes[at] = telling(); break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(at, bytes.substr(below(bytes.size()), length)); break;
      case 4:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, telling());
        break;
      default: bytes.resize(below(bytes.size())); break;
    }
  }

  char any() { return static_cast<char>(below(256)); }
  char telling() {
    constexpr std::string_view kTelling("\0\\\n \"'$`{}=<+-#:;|&\xFF", 21);
    return kTelling[below(kTelling.size())];
  }

  std::mt19937_64 random_;
};

/// Damage to a file that no reader takes in the first place would find nothing.
void check_seeds(const std::array<std::string, kReaders>& files) {
  for (std::size_t i = 0; i < kReaders; ++i) (void)read(static_cast<Reader>(i), files[i]);
}

int fuzz(std::chrono::seconds duration, std::uint64_t seed) {
  const std::array<std::string, kReaders> files = seeds();
  check_seeds(files);
  Mutator mutator(seed);
  std::array<std::size_t, kReaders> runs{};
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
    const std::size_t file = mutator.below(kReaders);
    const std::string damaged = static_cast<char>(file) + mutator.damage(files[file]);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(damaged.data()), damaged.size());
    ++runs[file];
  }
  std::printf(
      "seed %llu: %zu Dockerfiles, %zu requirements files, %zu CDI specs, %zu linker caches, %zu "
      "locks, %zu reports, no crash\n",
      static_cast<unsigned long long>(seed), runs[0], runs[1], runs[2], runs[3], runs[4], runs[5]);
  return 0;
}

}  // namespace
}  // namespace yoke::image

int main(int argc, char** argv) {
  const long seconds = argc > 1 ? std::atol(argv[1]) : 5;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return yoke::image::fuzz(std::chrono::seconds(seconds), seed);
}

#endif
