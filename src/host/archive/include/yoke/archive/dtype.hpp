#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace yoke::archive {

/// The element types that both file formats and PyTorch have in common.
enum class Dtype {
  float64,
  float32,
  float16,
  bfloat16,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean,
};

/// Bytes of one element.
[[nodiscard]] std::size_t itemsize(Dtype dtype) noexcept;

/// PyTorch's name: "float32", "bool".
[[nodiscard]] std::string_view name(Dtype dtype) noexcept;

/// The name in a safetensors header: "F32", "BOOL".
[[nodiscard]] std::string_view safetensors_name(Dtype dtype) noexcept;

/// The class of a PyTorch storage: "FloatStorage", "BoolStorage".
[[nodiscard]] std::string_view storage_class(Dtype dtype) noexcept;

/// The dtype of that name in each of the three spellings; nothing if there is none.
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view name) noexcept;
[[nodiscard]] std::optional<Dtype> dtype_from_safetensors_name(std::string_view name) noexcept;
[[nodiscard]] std::optional<Dtype> dtype_from_storage_class(std::string_view name) noexcept;

}  // namespace yoke::archive
