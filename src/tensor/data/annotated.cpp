#include "yoke/data/annotated.hpp"

#include <ATen/Functions.h>

namespace yoke::data {
namespace {

// The library only reads what from_blob() makes writable.
template <class T>
at::Tensor view_of(const T* values, at::IntArrayRef sizes, at::IntArrayRef strides,
                   at::ScalarType dtype) {
  return at::from_blob(const_cast<T*>(values), sizes, strides, at::TensorOptions(dtype));
}

at::Tensor pixels_of(const feed::Image& image) {
  const std::int64_t height = image.height();
  const std::int64_t width = image.width();
  const auto row_bytes = static_cast<std::int64_t>(image.row_bytes());
  return view_of(image.row(0), {3, height, width}, {1, row_bytes, feed::Image::kPixelBytes},
                 at::kByte)
      .unsqueeze(0)
      .contiguous(at::MemoryFormat::ChannelsLast)
      .squeeze(0);
}

at::Tensor classes_of(const feed::Mask& mask) {
  const std::int64_t width = mask.width;
  return view_of(mask.values.data(), {mask.height, width}, {width, 1}, at::kByte).to(at::kLong);
}

at::Tensor corners_of(const std::vector<feed::Box>& boxes) {
  static_assert(sizeof(feed::Box) == 4 * sizeof(float));
  const auto count = static_cast<std::int64_t>(boxes.size());
  return view_of(boxes.data(), {count, 4}, {4, 1}, at::kFloat).clone();
}

}  // namespace

NamedTensors tensors_of(const feed::Annotated& annotated) {
  NamedTensors tensors{{"input", pixels_of(annotated.image)}};
  if (annotated.mask) tensors.emplace_back("mask", classes_of(*annotated.mask));
  tensors.emplace_back("boxes", corners_of(annotated.boxes));
  tensors.emplace_back("labels", at::tensor(annotated.labels, at::kLong));
  return tensors;
}

}  // namespace yoke::data
