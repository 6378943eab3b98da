#pragma once

#include <cstddef>
#include <string_view>

namespace yoke::shm {

/// The types of elements that can be reduced and moved; names as PyTorch's.
enum class Dtype { float32, float64, float16, bfloat16, int8, uint8, int32, int64, boolean };

/// Bytes of one element.
[[nodiscard]] std::size_t size_of(Dtype dtype) noexcept;

/// The name as written above, except "bool" for boolean.
[[nodiscard]] std::string_view name(Dtype dtype) noexcept;

/// Whether means of it can be taken.
[[nodiscard]] bool is_floating(Dtype dtype) noexcept;

}  // namespace yoke::shm
