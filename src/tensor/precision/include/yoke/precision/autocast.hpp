#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::precision {

/// What convolutions and matrix products compute in. Weights and optimizer state are float32 in
/// all.
enum class Precision {
  fp32,  ///< float32 throughout
  tf32,  ///< float32 tensors; products in the card's 19-bit format
  bf16,  ///< autocast to bfloat16
  fp16,  ///< autocast to float16; gradients need a GradScaler
};

/// The names as `--precision` takes them: fp32, tf32, bf16, fp16.
[[nodiscard]] std::vector<std::string> precision_names();
[[nodiscard]] std::string_view name(Precision precision) noexcept;

/// Errors: not_found for an unknown name, with the nearest one.
[[nodiscard]] Precision precision_from_name(std::string_view name);

/// The fastest that needs no thought on `device`: bf16 on a card from sm_80, fp16 on an older one
/// (with a scaler), fp32 on the CPU.
[[nodiscard]] Precision automatic(at::Device device);

/// Refuses what `device` cannot do. Errors: unsupported: fp16 on a CPU, whose operations torch
/// computes in float32 or not at all; tf32 without a card from sm_80.
void require_supported(Precision precision, at::Device device);

/// Whether gradients need scaling: float16 flushes to zero what float32 and bfloat16 hold.
[[nodiscard]] constexpr bool needs_scaler(Precision precision) {
  return precision == Precision::fp16;
}

/// Lets the process's products of float32 tensors run as `precision` says: tf32, bf16 and fp16
/// allow the card's short format, fp32 does not. A setting of torch's, for all threads.
void set_product_format(Precision precision);

/// While it lives, this thread's operations pick their type by torch's lists: convolutions and
/// matrix products in the low format, losses, norms and sums in float32.
///
///   at::Tensor loss;
///   {
///     const precision::Autocast autocast(Precision::bf16, device);
///     loss = at::cross_entropy_loss(model->forward(x), target);
///   }
///   loss.backward();  // outside: backward uses the types that forward chose
///
/// fp32 and tf32: no effect. Weights are cast once, at their first use inside.
/// Threads: for the one that made it; it ends in the same thread.
class Autocast {
 public:
  Autocast(Precision precision, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  at::DeviceType device_;
  bool enabled_before_ = false;
  at::ScalarType dtype_before_ = at::kFloat;
};

}  // namespace yoke::precision
