#include "yoke/shm/dtype.hpp"

#include <array>

#include "yoke/shm/reduction.hpp"

namespace yoke::shm {
namespace {

struct Facts {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

// In the order of Dtype.
constexpr std::array<Facts, 9> kFacts{{
    {"float32", 4, true},
    {"float64", 8, true},
    {"float16", 2, true},
    {"bfloat16", 2, true},
    {"int8", 1, false},
    {"uint8", 1, false},
    {"int32", 4, false},
    {"int64", 8, false},
    {"bool", 1, false},
}};

const Facts& facts(Dtype dtype) noexcept { return kFacts[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(Dtype dtype) noexcept { return facts(dtype).bytes; }

std::string_view name(Dtype dtype) noexcept { return facts(dtype).name; }

bool is_floating(Dtype dtype) noexcept { return facts(dtype).floating; }

std::string_view name(Reduction reduction) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"sum", "product", "minimum", "maximum", "mean"};
  return kNames[static_cast<std::size_t>(reduction)];
}

}  // namespace yoke::shm
