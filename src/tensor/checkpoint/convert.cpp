#include "yoke/checkpoint/convert.hpp"

#include <array>
#include <memory>
#include <optional>

#include <torch/types.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::checkpoint {
namespace {

using archive::Dtype;
using core::text;

constexpr std::array<std::pair<Dtype, at::ScalarType>, 10> kDtypes{{
    {Dtype::float64, at::kDouble},
    {Dtype::float32, at::kFloat},
    {Dtype::float16, at::kHalf},
    {Dtype::bfloat16, at::kBFloat16},
    {Dtype::int64, at::kLong},
    {Dtype::int32, at::kInt},
    {Dtype::int16, at::kShort},
    {Dtype::int8, at::kChar},
    {Dtype::uint8, at::kByte},
    {Dtype::boolean, at::kBool},
}};

Dtype archive_dtype(at::ScalarType type) {
  for (const auto& [dtype, known] : kDtypes) {
    if (known == type) return dtype;
  }
  throw Error(
      Code::unsupported,
      text("save a tensor of dtype ", c10::toString(type), ": no file format here holds it"),
      "convert it, e.g. to float32, or leave it out");
}

at::ScalarType torch_dtype(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].second; }

void check_savable(const at::Tensor& tensor) {
  if (!tensor.defined()) throw Error(Code::invalid_argument, "save a tensor: it is undefined");
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_meta()) {
    throw Error(Code::unsupported,
                text("save a tensor: ", tensor.toString(), " has no plain memory"),
                "make it dense first");
  }
}

archive::Tensor over_storage(const at::Tensor& tensor, Dtype dtype) {
  archive::Tensor result{
      .dtype = dtype, .shape = tensor.sizes().vec(), .strides = tensor.strides().vec()};
  result.offset = tensor.storage_offset();
  result.storage = {static_cast<const std::byte*>(tensor.storage().data()),
                    tensor.storage().nbytes()};
  result.owner = std::make_shared<const c10::Storage>(tensor.storage());
  return result;
}

/// The number of elements from the first to the last that the view reaches. Requires: it has
/// elements.
std::int64_t reach(const at::Tensor& tensor) {
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return last + 1;
}

at::Tensor host_copy(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

archive::Tensor ToArchive::operator()(const at::Tensor& tensor) {
  check_savable(tensor);
  const Dtype dtype = archive_dtype(tensor.scalar_type());
  at::Tensor plain = tensor.detach();
  if (plain.is_neg()) plain = plain.resolve_neg();
  const bool in_place = plain.is_cpu() && !options_.snapshot;
  archive::Tensor result = in_place ? over_storage(plain, dtype) : copied(plain, dtype);
  result.requires_grad = tensor.requires_grad();
  return result;
}

archive::Tensor ToArchive::copied(const at::Tensor& tensor, Dtype dtype) {
  const torch::NoGradGuard no_grad;
  if (tensor.numel() == 0 || reach(tensor) > tensor.numel()) {  // with holes: elements only
    return over_storage(host_copy(tensor.contiguous()), dtype);
  }
  const std::int64_t elements = reach(tensor);
  const auto first = static_cast<std::size_t>(tensor.storage_offset());
  const Key key{tensor.storage().unsafeGetStorageImpl(), first, static_cast<std::size_t>(elements),
                dtype};
  auto found = copies_.find(key);
  if (found == copies_.end()) {
    const at::Tensor run = tensor.as_strided({elements}, {1}, tensor.storage_offset());
    found = copies_.emplace(key, std::pair(run, host_copy(run))).first;
  }
  return over_storage(found->second.second.as_strided(tensor.sizes(), tensor.strides(), 0), dtype);
}

at::Tensor FromArchive::operator()(const archive::Tensor& tensor) {
  const auto options = at::TensorOptions(torch_dtype(tensor.dtype));
  at::Tensor result;
  if (archive::numel(tensor) == 0) {
    result = at::empty(tensor.shape, options);
  } else {
    at::Tensor& storage = storages_[tensor.storage.data()];
    if (!storage.defined()) {
      // Memory of this process alone (see archive::Tensor), so it may be written.
      void* start = const_cast<std::byte*>(tensor.storage.data());
      storage = at::from_blob(
          start, {static_cast<std::int64_t>(tensor.storage.size())},
          [owner = tensor.owner](void*) mutable { owner.reset(); }, at::TensorOptions(at::kByte));
    }
    result = at::empty({0}, options)
                 .set_(storage.storage(), tensor.offset, tensor.shape, tensor.strides);
  }
  // PyTorch allows gradients for floating types only.
  return result.set_requires_grad(tensor.requires_grad && at::isFloatingType(result.scalar_type()));
}

}  // namespace yoke::checkpoint
