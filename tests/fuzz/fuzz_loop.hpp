#pragma once

// What the rooms' fuzzers do where no libFuzzer drives them: damage sound inputs, seconds long.

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

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,  // NOLINT: libFuzzer's name
                                      std::size_t size);

namespace yoke::fuzz {

/// One to eight small damages. `telling` are bytes that mean something to the readers. The first
/// byte of an input stays: it chooses the reader.
class Mutator {
 public:
  Mutator(std::uint64_t seed, std::string_view telling) : random_(seed), telling_(telling) {}

  std::string damage(std::string bytes) {
    for (std::size_t times = 1 + below(8); times > 0; --times) once(bytes);
    return bytes;
  }

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void once(std::string& bytes) {
    const std::size_t at = 1 + below(bytes.size());
    if (at >= bytes.size()) return bytes.push_back(any());
    const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
    switch (below(7)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
      case 1: bytes[at] = any(); break;
      case 2: bytes[at] = telling(); break;
      case 3: bytes.erase(at, length); break;
      case 4: bytes.insert(at, bytes.substr(1 + below(bytes.size() - 1), length)); break;
      case 5:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, telling());
        break;
      default: bytes.resize(1 + below(bytes.size())); break;
    }
  }

  char any() { return static_cast<char>(below(256)); }
  char telling() { return telling_[below(telling_.size())]; }

  std::mt19937_64 random_;
  std::string_view telling_;
};

/// The main() of a fuzzer: SECONDS (5) and SEED (1) are its arguments; `names` are the readers', by
/// the first byte of an input. Ends with 0, or as the target does.
template <std::size_t readers>
int run(int argc, char** argv, const std::vector<std::string>& inputs, std::string_view telling,
        const std::array<const char*, readers>& names) {
  const std::chrono::seconds duration(argc > 1 ? std::atol(argv[1]) : 5);
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Mutator mutator(seed, telling);
  std::array<std::size_t, readers> runs{};
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
    const std::string& input = inputs[mutator.below(inputs.size())];
    const std::string damaged = mutator.damage(input);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(damaged.data()), damaged.size());
    ++runs.at(static_cast<std::size_t>(input[0]));
  }
  std::printf("seed %llu:", static_cast<unsigned long long>(seed));
  for (std::size_t reader = 0; reader < readers; ++reader)
    std::printf(" %zu %s,", runs[reader], names[reader]);
  std::puts(" no crash");
  return 0;
}

}  // namespace yoke::fuzz
