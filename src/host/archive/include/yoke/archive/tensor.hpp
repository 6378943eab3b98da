#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/archive/dtype.hpp"

namespace yoke::archive {

/// A strided view of a storage, as bytes in host memory: what is written and what a reader returns.
///
///   std::vector<float> weights(6);
///   Tensor transposed{.dtype = Dtype::float32, .shape = {3, 2}, .strides = {1, 3},
///                     .storage = std::as_bytes(std::span(weights))};
///
/// Two tensors alias each other if their storages begin at the same address.
/// Owns: `owner` keeps the storage alive (a mapped file, for what a reader returns). With a null
///   owner the storage is borrowed from the caller, who keeps it until the write returns.
/// Threads: a value; copies share the storage. What a reader returns lies in memory of this process
///   alone, so who takes it over may write it; the file stays as it is.
struct Tensor {
  Dtype dtype = Dtype::float32;
  std::vector<std::int64_t> shape{};     ///< of each dimension; empty for a scalar
  std::vector<std::int64_t> strides{};   ///< in elements, as many as shape has
  std::int64_t offset = 0;               ///< of the first element in the storage, in elements
  std::span<const std::byte> storage{};  ///< all of it, also what the view does not reach
  std::shared_ptr<const void> owner{};   ///< keeps `storage` alive
  bool requires_grad = false;            ///< as PyTorch's files keep it; safetensors drops it
};

/// A tensor under its name in a state_dict.
struct NamedTensor {
  std::string name{};
  Tensor tensor{};
};

/// The strides of a row-major tensor without holes.
[[nodiscard]] std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape);

/// A row-major tensor that fills `storage`.
[[nodiscard]] Tensor contiguous_tensor(Dtype dtype, std::vector<std::int64_t> shape,
                                       std::span<const std::byte> storage,
                                       std::shared_ptr<const void> owner = nullptr);

/// What is wrong with the view, e.g. "float32 [2, 3] reaches 24 B of a storage of 20 B"; nothing
/// for a sound one. Sound: as many strides as sizes, none negative, every element within the
/// storage, no overflow on the way.
[[nodiscard]] std::optional<std::string> defect(const Tensor& tensor);

// All below require a sound view.

[[nodiscard]] std::int64_t numel(const Tensor& tensor);

/// numel() times the size of an element: what the tensor takes once it is contiguous.
[[nodiscard]] std::size_t nbytes(const Tensor& tensor);

/// Whether the elements lie in row-major order without holes.
[[nodiscard]] bool is_contiguous(const Tensor& tensor);

/// The bytes from the first to the last element that the view reaches; empty without elements.
[[nodiscard]] std::span<const std::byte> reach(const Tensor& tensor);

/// Hands over the elements in row-major order, in one piece if they lie so, else in pieces of at
/// most 1 MiB that are valid during the call.
void visit_row_major(const Tensor& tensor,
                     const std::function<void(std::span<const std::byte>)>& take);

/// The elements in row-major order.
[[nodiscard]] std::vector<std::byte> row_major_bytes(const Tensor& tensor);

/// "float32 [2, 3]".
[[nodiscard]] std::string describe(const Tensor& tensor);

}  // namespace yoke::archive
