#include "yoke/data/tensor_dataset.hpp"

#include <cstddef>
#include <cstring>

#include "fingerprint.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {
namespace {

at::Tensor on_host(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

void check(const at::Tensor& input, const at::Tensor& target) {
  const auto refuse = [](const std::string& what) {
    throw Error(Code::invalid_argument, "make a data set of tensors: " + what,
                "give two tensors whose first dimension counts the samples");
  };
  if (!input.defined() || !target.defined()) refuse("a tensor is undefined");
  if (input.dim() == 0 || target.dim() == 0) refuse("a tensor is a scalar");
  if (input.size(0) != target.size(0)) {
    refuse(core::text(input.size(0), " inputs, but ", target.size(0), " targets"));
  }
}

std::int64_t classes_in(const at::Tensor& target) {
  const bool may_be_classes = target.dim() == 1 && target.scalar_type() == at::kLong;
  if (!may_be_classes || target.numel() == 0 || target.min().item<std::int64_t>() < 0) return 0;
  return target.max().item<std::int64_t>() + 1;
}

void copy_rows(const at::Tensor& from, std::span<const std::int64_t> indices,
               const at::Tensor& to) {
  const auto row_bytes = static_cast<std::size_t>(to.numel()) * to.element_size() / indices.size();
  const auto* source = static_cast<const std::byte*>(from.const_data_ptr());
  auto* place = static_cast<std::byte*>(to.mutable_data_ptr());
  for (const std::int64_t index : indices) {
    std::memcpy(place, source + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    place += row_bytes;
  }
}

}  // namespace

TensorDataset::TensorDataset(const at::Tensor& input, const at::Tensor& target,
                             std::int64_t num_classes) {
  check(input, target);
  input_ = on_host(input);
  target_ = on_host(target);
  num_classes_ = num_classes > 0 ? num_classes : classes_in(target_);
}

SampleLayout TensorDataset::layout() const {
  return {.input_sizes = input_.sizes().slice(1).vec(),
          .input_dtype = input_.scalar_type(),
          .target_sizes = target_.sizes().slice(1).vec(),
          .target_dtype = target_.scalar_type()};
}

void TensorDataset::fill(const Request& request, const Rows& rows) const {
  copy_rows(input_, request.indices, rows.input);
  copy_rows(target_, request.indices, rows.target);
}

std::uint64_t TensorDataset::fingerprint() const {
  const std::uint64_t shapes = fingerprint_of(target_.sizes(), fingerprint_of(input_.sizes()));
  if (target_.scalar_type() != at::kLong) return shapes;
  return fingerprint_of(
      {target_.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(target_.numel())}, shapes);
}

}  // namespace yoke::data
