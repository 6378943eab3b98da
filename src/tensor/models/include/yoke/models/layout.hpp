#pragma once

#include <torch/nn/module.h>

namespace yoke::models {

/// Lays every 4-D parameter out channels-last, in place: the tensors that the module holds stay the
/// same, so it may be called before or after an optimizer is made, but not after a gradient is
/// there. A 1x1 weight lies the same way in memory in both layouts and gets the strides of the
/// plain one: the other ones, [c, 1, c, c], make gradients that are views of a bucket look like
/// another layout.
void to_channels_last(torch::nn::Module& module);

}  // namespace yoke::models
