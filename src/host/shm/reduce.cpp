#include "reduce.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace yoke::shm {
namespace {

// Note [Reduction in blocks]
// A block of elements of all sources is gathered in an accumulator that stays in the first-level
// cache, then written to all destinations. Each loop below is plain, over restricted pointers, so
// that the compiler turns it into vector code; on x86-64 the whole is compiled a second time for
// AVX2 and chosen at run time. Vector and scalar code round alike: no contraction (CMakeLists.txt),
// and no sum runs across elements.
constexpr std::size_t kBlock = 2048;

#define YOKE_INLINE [[gnu::always_inline]] inline

// How an element of a dtype is kept (Stored), and what it is reduced in (Wide).
template <class T>
struct Plain {
  using Stored = T;
  using Wide = T;
  YOKE_INLINE static Wide load(Stored x) { return x; }
  YOKE_INLINE static Stored store(Wide x) { return x; }
};

struct Boolean {
  using Stored = std::uint8_t;
  using Wide = std::uint8_t;
  YOKE_INLINE static Wide load(Stored x) { return x != 0 ? 1 : 0; }
  YOKE_INLINE static Stored store(Wide x) { return x; }
};

YOKE_INLINE std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return condition ? yes : no;
}

struct Bfloat16 {
  using Stored = std::uint16_t;
  using Wide = float;
  YOKE_INLINE static Wide load(Stored x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
  }
  YOKE_INLINE static Stored store(Wide x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);  // nearest, ties to even
    const std::uint32_t quiet_nan = bits | 0x400000U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>(select(is_nan, quiet_nan, rounded) >> 16);
  }
};

// Integer arithmetic and exact float steps on normal numbers: needs no half instructions, and gives
// the same where denormal floats are flushed. All cases are computed and one selected, so that
// loops over it vectorise.
struct Float16 {
  using Stored = std::uint16_t;
  using Wide = float;
  YOKE_INLINE static Wide load(Stored x) {
    const std::uint32_t sign = (static_cast<std::uint32_t>(x) & 0x8000U) << 16;
    const std::uint32_t magnitude = (static_cast<std::uint32_t>(x) & 0x7fffU) << 13;
    const std::uint32_t exponent = magnitude & 0x0f800000U;
    const std::uint32_t normal = magnitude + (112U << 23);
    const std::uint32_t special = magnitude + (224U << 23);  // infinity, NaN
    const float tiny = std::bit_cast<float>(magnitude + (113U << 23)) - 0x1p-14F;
    const std::uint32_t finite = select(exponent == 0, std::bit_cast<std::uint32_t>(tiny), normal);
    return std::bit_cast<float>(select(exponent == 0x0f800000U, special, finite) | sign);
  }
  YOKE_INLINE static Stored store(Wide x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = bits & 0x80000000U;
    const std::uint32_t magnitude = bits ^ sign;
    // Nearest, ties to even, on the 13 bits that go; a carry moves on to the exponent, as it
    // should.
    const std::uint32_t normal =
        (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    // 0.5's last bit is worth 2^-24, half's smallest number: the adder does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    const std::uint32_t tiny = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
    const std::uint32_t quiet_nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
    const std::uint32_t special = select(magnitude > 0x7f800000U, quiet_nan, 0x7c00U);
    const std::uint32_t finite = select(magnitude < (113U << 23), tiny, normal);
    const std::uint32_t half = select(magnitude >= (143U << 23), special, finite);
    return static_cast<std::uint16_t>(half | (sign >> 16));
  }
};

// Integers wrap around: in an unsigned type that is wide enough not to be promoted to int.
template <class T>
using Wrapping =
    std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;

template <Reduction kReduction, class T>
YOKE_INLINE T combine(T a, T b) {
  if constexpr (kReduction == Reduction::minimum) {
    return (a != a || a < b) ? a : b;  // a NaN stays: of either side
  } else if constexpr (kReduction == Reduction::maximum) {
    return (a != a || a > b) ? a : b;
  } else if constexpr (std::is_floating_point_v<T>) {
    return kReduction == Reduction::product ? a * b : a + b;
  } else {
    const auto left = static_cast<Wrapping<T>>(a);
    const auto right = static_cast<Wrapping<T>>(b);
    return static_cast<T>(kReduction == Reduction::product ? left * right : left + right);
  }
}

// Of ordinary size, so that its reciprocal is exact.
template <class T>
YOKE_INLINE bool is_power_of_two(T x) {
  return x == T{1} || x == T{2} || x == T{4} || x == T{8} || x == T{16} || x == T{32} || x == T{64};
}

template <class Kind, Reduction kReduction>
struct BlockReducer {
  using Stored = typename Kind::Stored;
  using Wide = typename Kind::Wide;
  static constexpr bool kMean = kReduction == Reduction::mean;
  static constexpr bool kConverts = !std::is_same_v<Stored, Wide>;

  YOKE_INLINE static const Stored* at(const Source& source, std::size_t begin) {
    return reinterpret_cast<const Stored*>(source.data) + begin;
  }

  YOKE_INLINE static Wide taken(Stored x, [[maybe_unused]] Wide scale) {
    if constexpr (kMean) {
      return scale * Kind::load(x);
    } else {
      return Kind::load(x);
    }
  }

  YOKE_INLINE static void copy(const Stored* __restrict in, Wide scale, Wide* __restrict wide,
                               std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) wide[i] = taken(in[i], scale);
  }

  YOKE_INLINE static void add(const Stored* __restrict in, Wide scale, Wide* __restrict wide,
                              std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      wide[i] = combine<kReduction>(wide[i], taken(in[i], scale));
    }
  }

  YOKE_INLINE static void divide(Wide* __restrict wide, Wide divisor, std::size_t count) {
    // By a power of two (2, 4, 8 ranks) the product has the same bits, several times as fast.
    const Wide reciprocal = Wide{1} / divisor;
    if (is_power_of_two(divisor)) {
      for (std::size_t i = 0; i < count; ++i) wide[i] *= reciprocal;
    } else {
      for (std::size_t i = 0; i < count; ++i) wide[i] /= divisor;
    }
  }

  YOKE_INLINE static void store(const Wide* __restrict wide, Stored* __restrict out,
                                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = Kind::store(wide[i]);
  }

  YOKE_INLINE static void run(const ReduceJob& job) {
    alignas(64) std::array<Wide, kBlock> wide;
    alignas(64) std::array<Stored, kConverts ? kBlock : 1> converted;
    for (std::size_t begin = 0; begin < job.count; begin += kBlock) {
      const std::size_t count = std::min(kBlock, job.count - begin);
      copy(at(job.sources[0], begin), static_cast<Wide>(job.sources[0].scale), wide.data(), count);
      for (const Source& source : job.sources.subspan(1)) {
        add(at(source, begin), static_cast<Wide>(source.scale), wide.data(), count);
      }
      if constexpr (kMean) divide(wide.data(), static_cast<Wide>(job.divisor), count);
      const void* result = wide.data();
      if constexpr (kConverts) {
        store(wide.data(), converted.data(), count);
        result = converted.data();
      }
      for (std::byte* const destination : job.destinations) {
        std::memcpy(destination + begin * sizeof(Stored), result, count * sizeof(Stored));
      }
    }
  }
};

// The entries of the table below. Whatever is inlined into one takes on its instruction set.
template <class Kind, Reduction kReduction>
void run_plain(const ReduceJob& job) {
  BlockReducer<Kind, kReduction>::run(job);
}

#if defined(__x86_64__)
template <class Kind, Reduction kReduction>
[[gnu::target("avx2")]] void run_avx2(const ReduceJob& job) {
  BlockReducer<Kind, kReduction>::run(job);
}
#endif

template <class Kind, Reduction kReduction>
void run(const ReduceJob& job) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return run_avx2<Kind, kReduction>(job);
#endif
  run_plain<Kind, kReduction>(job);
}

template <class Kind>
void run_kind(const ReduceJob& job) {
  switch (job.reduction) {
    case Reduction::sum: return run<Kind, Reduction::sum>(job);
    case Reduction::product: return run<Kind, Reduction::product>(job);
    case Reduction::minimum: return run<Kind, Reduction::minimum>(job);
    case Reduction::maximum: return run<Kind, Reduction::maximum>(job);
    case Reduction::mean:
      if constexpr (std::is_floating_point_v<typename Kind::Wide>) {
        return run<Kind, Reduction::mean>(job);
      }
  }
}

void run_boolean(const ReduceJob& job) {
  const bool any = job.reduction == Reduction::sum || job.reduction == Reduction::maximum;
  if (any) return run<Boolean, Reduction::maximum>(job);
  run<Boolean, Reduction::minimum>(job);
}

}  // namespace

void reduce(const ReduceJob& job) {
  if (job.sources.empty()) {
    for (std::byte* const destination : job.destinations) {
      std::memset(destination, 0, job.count * size_of(job.dtype));
    }
    return;
  }
  switch (job.dtype) {
    case Dtype::float32: return run_kind<Plain<float>>(job);
    case Dtype::float64: return run_kind<Plain<double>>(job);
    case Dtype::float16: return run_kind<Float16>(job);
    case Dtype::bfloat16: return run_kind<Bfloat16>(job);
    case Dtype::int8: return run_kind<Plain<std::int8_t>>(job);
    case Dtype::uint8: return run_kind<Plain<std::uint8_t>>(job);
    case Dtype::int32: return run_kind<Plain<std::int32_t>>(job);
    case Dtype::int64: return run_kind<Plain<std::int64_t>>(job);
    case Dtype::boolean: return run_boolean(job);
  }
}

Slice slice_of(std::size_t count, std::size_t element_bytes, std::size_t offset_bytes, int rank,
               int ranks) noexcept {
  constexpr std::size_t kLine = 64;
  const std::size_t lead = offset_bytes % kLine;  // of the first line, before the first element
  const std::size_t lines = (lead + count * element_bytes + kLine - 1) / kLine;
  const auto border = [&](int before) {
    const std::size_t line =
        lines * static_cast<std::size_t>(before) / static_cast<std::size_t>(ranks);
    const std::size_t bytes = line * kLine;
    return std::min(count, bytes <= lead ? 0 : (bytes - lead) / element_bytes);
  };
  const std::size_t begin = border(rank);
  return {begin, border(rank + 1) - begin};
}

}  // namespace yoke::shm
