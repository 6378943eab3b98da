#include "yoke/archive/dtype.hpp"

#include <array>

namespace yoke::archive {
namespace {

struct Names {
  Dtype dtype;
  std::size_t itemsize;
  std::string_view torch;
  std::string_view safetensors;
  std::string_view storage;
};

// In the order of the enumerators.
constexpr std::array<Names, 10> kNames{{
    {Dtype::float64, 8, "float64", "F64", "DoubleStorage"},
    {Dtype::float32, 4, "float32", "F32", "FloatStorage"},
    {Dtype::float16, 2, "float16", "F16", "HalfStorage"},
    {Dtype::bfloat16, 2, "bfloat16", "BF16", "BFloat16Storage"},
    {Dtype::int64, 8, "int64", "I64", "LongStorage"},
    {Dtype::int32, 4, "int32", "I32", "IntStorage"},
    {Dtype::int16, 2, "int16", "I16", "ShortStorage"},
    {Dtype::int8, 1, "int8", "I8", "CharStorage"},
    {Dtype::uint8, 1, "uint8", "U8", "ByteStorage"},
    {Dtype::boolean, 1, "bool", "BOOL", "BoolStorage"},
}};

const Names& names(Dtype dtype) noexcept { return kNames[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> find(std::string_view Names::* spelling, std::string_view name) noexcept {
  for (const Names& row : kNames) {
    if (row.*spelling == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace

std::size_t itemsize(Dtype dtype) noexcept { return names(dtype).itemsize; }
std::string_view name(Dtype dtype) noexcept { return names(dtype).torch; }
std::string_view safetensors_name(Dtype dtype) noexcept { return names(dtype).safetensors; }
std::string_view storage_class(Dtype dtype) noexcept { return names(dtype).storage; }

std::optional<Dtype> dtype_from_name(std::string_view name) noexcept {
  return find(&Names::torch, name);
}

std::optional<Dtype> dtype_from_safetensors_name(std::string_view name) noexcept {
  return find(&Names::safetensors, name);
}

std::optional<Dtype> dtype_from_storage_class(std::string_view name) noexcept {
  return find(&Names::storage, name);
}

}  // namespace yoke::archive
