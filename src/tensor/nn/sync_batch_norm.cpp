#include "yoke/nn/sync_batch_norm.hpp"

#include <array>
#include <cstdint>

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/batchnorm.h>

#include "yoke/comm/group.hpp"
#include "yoke/comm/row_weight.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/nn/batch_norm.hpp"

namespace yoke::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::array<std::int64_t, 3> kAllButChannels{0, 2, 3};

at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor per_channel(const at::Tensor& values) { return values.view({1, -1, 1, 1}); }

// What a rank tells of its own values: [mean, sum of squares about it, count, rows].
at::Tensor summary_of(const at::Tensor& wide) {
  const std::int64_t channels = wide.size(1);
  const std::int64_t count = wide.numel() / channels;
  at::Tensor mean = at::zeros({channels}, wide.options());
  at::Tensor squares = at::zeros({channels}, wide.options());
  if (count > 0) {
    mean = wide.mean(kAllButChannels);
    squares = (wide - per_channel(mean)).square().sum(kAllButChannels);
  }
  // Filled on the device: a copy from the host cannot be part of a captured step.
  return at::cat({mean, squares, at::full({1}, count, wide.options()),
                  at::full({1}, wide.size(0), wide.options())});
}

struct Statistics {
  at::Tensor mean;
  at::Tensor variance;  // biased
  at::Tensor unbiased;
  at::Tensor count;  // [] of all ranks
  at::Tensor rows;   // [] of all ranks
};

// Chan's formula for parts of a sample; exact where a rank has none.
Statistics over_ranks(const at::Tensor& summary, std::int64_t channels, comm::Group& group) {
  at::Tensor all = at::empty({group.size(), summary.numel()}, summary.options());
  group.all_gather(all, summary);
  const at::Tensor means = all.narrow(1, 0, channels);
  const at::Tensor squares = all.narrow(1, channels, channels);
  const at::Tensor counts = all.narrow(1, 2 * channels, 1);
  Statistics out;
  out.count = counts.sum();
  out.rows = all.narrow(1, 2 * channels + 1, 1).sum();
  out.mean = (means * counts).sum(0) / out.count;
  const at::Tensor deviations = squares + counts * (means - out.mean).square();
  const at::Tensor sum = deviations.sum(0);
  out.variance = sum / out.count;
  out.unbiased = sum / (out.count - 1).clamp_min(1);  // one value: no spread, and no NaN
  return out;
}

void move_towards(const at::Tensor& running, const at::Tensor& value, double momentum) {
  if (running.defined()) running.lerp_(value.to(running.scalar_type()), momentum);
}

struct SyncedNorm : torch::autograd::Function<SyncedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const kernels::BatchNormState& state,
                            double momentum, double eps, comm::Group* group) {
    const at::Tensor wide = x.to(wide_type(x));
    const Statistics over = over_ranks(summary_of(wide), x.size(1), *group);
    move_towards(state.running_mean, over.mean, momentum);
    move_towards(state.running_var, over.unbiased, momentum);
    if (state.num_batches_tracked.defined()) state.num_batches_tracked.add_(1);
    const at::Tensor invstd = (over.variance + eps).rsqrt();
    context->save_for_backward({x, weight, over.mean, invstd, over.count});
    const double weight_here = comm::row_weight();
    context->saved_data["weight"] = weight_here < 0 ? static_cast<double>(x.size(0)) : weight_here;
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(group);
    const at::Tensor y = (wide - per_channel(over.mean)) * per_channel(invstd * weight) +
                         per_channel(bias.to(wide.scalar_type()));
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& invstd = saved[3];
    if (at::GradMode::is_enabled() && gradients[0].requires_grad()) {
      throw Error(Code::unsupported, "differentiate the gradient of a synchronised BatchNorm2d");
    }
    auto* group = reinterpret_cast<comm::Group*>(context->saved_data["group"].toInt());
    const at::NoGradGuard no_grad;
    const at::Tensor dy = gradients[0].to(wide_type(x));
    const at::Tensor centred = x.to(dy.scalar_type()) - per_channel(saved[2]);
    const at::Tensor sums = dy.sum(kAllButChannels);
    const at::Tensor products = (dy * centred).sum(kAllButChannels);
    // Each rank's dy is of the mean over its own rows; averaging over ranks will weigh it by them.
    // So does the sum here, and the share that comes back is of this rank's mean again.
    const double weigh = context->saved_data["weight"].toDouble();
    at::Tensor all = at::cat({sums, products}) * weigh;
    group->all_reduce(all);
    if (weigh > 0) all = all / weigh;
    const at::Tensor mean_dy = all.narrow(0, 0, x.size(1)) / saved[4];
    const at::Tensor slope = all.narrow(0, x.size(1), x.size(1)) * invstd.square() / saved[4];
    const at::Tensor dx =
        (dy - per_channel(mean_dy) - centred * per_channel(slope)) * per_channel(invstd * weight);
    return {dx.to(x.scalar_type()),
            (products * invstd).to(weight.scalar_type()),
            sums.to(weight.scalar_type()),
            at::Tensor(),
            at::Tensor(),
            at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

std::size_t synchronise_norms(torch::nn::Module& module, comm::Group& group) {
  std::size_t found = 0;
  for (const auto& item : module.named_modules("", /*include_self=*/true)) {
    if (auto* norm = item.value()->as<BatchNorm2dImpl>()) {
      norm->group = &group;
      ++found;
    } else if (item.value()->as<torch::nn::BatchNorm2dImpl>() != nullptr) {
      throw Error(Code::unsupported,
                  core::text("synchronise norms: \"", item.key(), "\" is a torch::nn::BatchNorm2d"),
                  "build the model with yoke::nn::BatchNorm2d; its parameters have the same names");
    }
  }
  return found;
}

bool has_synchronised_norms(const torch::nn::Module& module) {
  for (const auto& one : module.modules(/*include_self=*/true)) {
    const auto* norm = one->as<BatchNorm2dImpl>();
    if (norm != nullptr && norm->group != nullptr) return true;
  }
  return false;
}

at::Tensor sync_batch_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const kernels::BatchNormState& state, double momentum, double eps,
                           comm::Group& group) {
  return SyncedNorm::apply(x, weight, bias, state, momentum, eps, &group);
}

}  // namespace yoke::nn
