#include "yoke/models/layout.hpp"

#include <c10/util/strides.h>

namespace yoke::models {

void to_channels_last(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters()) {
    if (parameter.dim() != 4) continue;
    const at::Tensor values = parameter.detach();
    const bool one_by_one = parameter.size(2) == 1 && parameter.size(3) == 1;
    if (one_by_one) {
      // contiguous() alone hands back what counts as contiguous in both layouts, odd strides and
      // all
      const auto strides = c10::contiguous_strides(values.sizes());
      parameter.set_data(values.contiguous().as_strided(values.sizes(), strides));
    } else {
      parameter.set_data(values.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

}  // namespace yoke::models
