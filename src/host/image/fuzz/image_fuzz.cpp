// Feeds damaged files to the readers of room image. Whatever the bytes, a reader returns or throws
// yoke::Error; a corrected Dockerfile is linted again.
//
// The first byte chooses the reader. With libFuzzer (clang -fsanitize=fuzzer, -DYOKE_LIBFUZZER)
// LLVMFuzzerTestOneInput is the target; otherwise main() mutates sound files for so many seconds:
//
//   image_fuzz_test SECONDS [SEED]

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_loop.hpp"
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

/// Damage to a file that no reader takes in the first place would find nothing.
void check_seeds(const std::array<std::string, kReaders>& files) {
  for (std::size_t i = 0; i < kReaders; ++i) (void)read(static_cast<Reader>(i), files[i]);
}

constexpr std::string_view kTelling("\0\\\n \"'$`{}=<+-#:;|&\xFF", 21);

}  // namespace
}  // namespace yoke::image

int main(int argc, char** argv) {
  using namespace yoke::image;
  const std::array<std::string, kReaders> files = seeds();
  check_seeds(files);
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < kReaders; ++i) inputs.push_back(static_cast<char>(i) + files[i]);
  return yoke::fuzz::run(argc, argv, inputs, kTelling,
                         std::array{"Dockerfiles", "requirements files", "CDI specs",
                                    "linker caches", "locks", "reports"});
}

#endif
