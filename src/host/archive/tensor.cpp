#include "yoke/archive/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

constexpr std::size_t kPiece = 1 << 20;

/// One past the last element reached, in elements of the storage; nothing on overflow.
std::optional<std::int64_t> end_of_reach(const Tensor& tensor) {
  std::int64_t last = tensor.offset;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t span = 0;
    if (__builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &span)) return std::nullopt;
    if (__builtin_add_overflow(last, span, &last)) return std::nullopt;
  }
  if (__builtin_add_overflow(last, 1, &last)) return std::nullopt;
  return last;
}

/// How many of the last dimensions lie in one run, and the elements of such a run.
std::pair<std::size_t, std::int64_t> inner_run(const Tensor& tensor) {
  std::size_t outer = tensor.shape.size();
  std::int64_t run = 1;
  while (outer > 0 && (tensor.shape[outer - 1] == 1 || tensor.strides[outer - 1] == run)) {
    run *= tensor.shape[--outer];
  }
  return {outer, run};
}

/// Moves `index` to the next position of the first index.size() dimensions; false after the last.
bool advance(std::vector<std::int64_t>& index, const Tensor& tensor, std::int64_t& element) {
  for (std::size_t d = index.size(); d-- > 0;) {
    element += tensor.strides[d];
    if (++index[d] < tensor.shape[d]) return true;
    element -= tensor.strides[d] * tensor.shape[d];
    index[d] = 0;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::uint64_t stride = 1;  // unsigned: the sizes of a tensor without elements may overflow
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(shape[d], 1));
  }
  return strides;
}

Tensor contiguous_tensor(Dtype dtype, std::vector<std::int64_t> shape,
                         std::span<const std::byte> storage, std::shared_ptr<const void> owner) {
  Tensor tensor{
      .dtype = dtype, .shape = std::move(shape), .storage = storage, .owner = std::move(owner)};
  tensor.strides = contiguous_strides(tensor.shape);
  return tensor;
}

std::optional<std::string> defect(const Tensor& tensor) {
  using core::text;
  if (tensor.shape.size() != tensor.strides.size()) {
    return text(tensor.shape.size(), " sizes with ", tensor.strides.size(), " strides");
  }
  if (tensor.offset < 0) return text("offset ", tensor.offset);
  bool empty = false;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] < 0) return text("size ", tensor.shape[d], " in dimension ", d);
    if (tensor.strides[d] < 0) return text("stride ", tensor.strides[d], " in dimension ", d);
    empty = empty || tensor.shape[d] == 0;
    if (!empty && __builtin_mul_overflow(count, tensor.shape[d], &count)) {
      return describe(tensor) + " has more than 2^63 elements";
    }
  }
  if (empty) return std::nullopt;
  const auto end = end_of_reach(tensor);
  const std::size_t elements = tensor.storage.size() / itemsize(tensor.dtype);
  if (end && static_cast<std::uint64_t>(*end) <= elements &&
      std::cmp_less_equal(count, PTRDIFF_MAX / 8)) {
    return std::nullopt;
  }
  return text(describe(tensor), " reaches ",
              end ? text("element ", *end) : std::string("past 2^63 elements"), " of a storage of ",
              elements);
}

std::int64_t numel(const Tensor& tensor) {
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

std::size_t nbytes(const Tensor& tensor) {
  return static_cast<std::size_t>(numel(tensor)) * itemsize(tensor.dtype);
}

bool is_contiguous(const Tensor& tensor) {
  return numel(tensor) == 0 || inner_run(tensor).first == 0;
}

std::span<const std::byte> reach(const Tensor& tensor) {
  if (numel(tensor) == 0) return {};
  const std::size_t size = itemsize(tensor.dtype);
  const auto begin = static_cast<std::size_t>(tensor.offset);
  const auto end = static_cast<std::size_t>(end_of_reach(tensor).value_or(tensor.offset));
  return tensor.storage.subspan(begin * size, (end - begin) * size);
}

void visit_row_major(const Tensor& tensor,
                     const std::function<void(std::span<const std::byte>)>& take) {
  if (numel(tensor) == 0) return;
  const auto [outer, run] = inner_run(tensor);
  const std::size_t size = itemsize(tensor.dtype);
  const std::size_t run_bytes = static_cast<std::size_t>(run) * size;
  if (outer == 0) return take(reach(tensor));

  std::vector<std::byte> piece;
  piece.reserve(kPiece);
  std::vector<std::int64_t> index(outer, 0);
  std::int64_t element = tensor.offset;
  do {
    std::span<const std::byte> bytes =
        tensor.storage.subspan(static_cast<std::size_t>(element) * size, run_bytes);
    while (!bytes.empty()) {
      const std::size_t fits = std::min(bytes.size(), kPiece - piece.size());
      piece.insert(piece.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(fits));
      bytes = bytes.subspan(fits);
      if (piece.size() < kPiece) continue;
      take(piece);
      piece.clear();
    }
  } while (advance(index, tensor, element));
  if (!piece.empty()) take(piece);
}

std::vector<std::byte> row_major_bytes(const Tensor& tensor) {
  std::vector<std::byte> bytes;
  bytes.reserve(nbytes(tensor));
  visit_row_major(tensor, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

std::string describe(const Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.shape) {
    constexpr std::size_t kMost = 16;  // a damaged file may claim any number
    sizes.push_back(sizes.size() < kMost ? std::to_string(size) : "...");
    if (sizes.size() > kMost) break;
  }
  return core::text(name(tensor.dtype), " [", core::joined(sizes), "]");
}

}  // namespace yoke::archive
