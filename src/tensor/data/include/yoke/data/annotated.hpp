#pragma once

#include "yoke/data/batch.hpp"
#include "yoke/feed/joint_transforms.hpp"

namespace yoke::data {

/// What feed::JointTransforms left, for the get() of a NamedDataset:
///
///   feed::Annotated street = ...;  // image, mask, boxes
///   joint_.apply(street, random);
///   return tensors_of(street);
///
/// Names and shapes: input [3, height, width] uint8 in channels-last memory; where there is a mask,
///   mask [height, width] int64; boxes [n, 4] float32 (left, top, right, bottom) and labels [n]
///   int64, n may be 0 and differs by sample. The tensors own their memory. Threads: any.
[[nodiscard]] NamedTensors tensors_of(const feed::Annotated& annotated);

}  // namespace yoke::data
