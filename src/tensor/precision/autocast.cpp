#include "yoke/precision/autocast.hpp"

#include <array>
#include <utility>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#ifdef YOKE_CUDA
#include <ATen/cuda/CUDAContextLight.h>
#endif

namespace yoke::precision {
namespace {

constexpr std::array kNames{std::pair{Precision::fp32, std::string_view("fp32")},
                            std::pair{Precision::tf32, std::string_view("tf32")},
                            std::pair{Precision::bf16, std::string_view("bf16")},
                            std::pair{Precision::fp16, std::string_view("fp16")}};

bool is_low(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

at::ScalarType dtype_of(Precision precision) {
  return precision == Precision::bf16 ? at::kBFloat16 : at::kHalf;
}

/// From sm_80 on: bfloat16 and tf32 in the tensor cores.
bool has_new_formats([[maybe_unused]] at::Device device) {
#ifdef YOKE_CUDA
  return device.is_cuda() && at::cuda::getDeviceProperties(device.index())->major >= 8;
#else
  return false;
#endif
}

}  // namespace

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const auto& [precision, word] : kNames) names.emplace_back(word);
  return names;
}

std::string_view name(Precision precision) noexcept {
  return kNames[static_cast<std::size_t>(precision)].second;
}

Precision precision_from_name(std::string_view word) {
  for (const auto& [precision, known] : kNames) {
    if (known == word) return precision;
  }
  throw Error(Code::not_found, core::text("precision ", word, " is not known"),
              core::unknown_name_hint(word, precision_names()));
}

Precision automatic(at::Device device) {
  if (!device.is_cuda()) return Precision::fp32;
  return has_new_formats(device) ? Precision::bf16 : Precision::fp16;
}

void require_supported(Precision precision, at::Device device) {
  if (precision == Precision::fp16 && !device.is_cuda()) {
    throw Error(Code::unsupported, core::text("train in fp16 on ", device.str()),
                "use --precision bf16 or fp32 on a CPU");
  }
  if (precision == Precision::tf32 && !has_new_formats(device)) {
    throw Error(Code::unsupported,
                core::text("train in tf32 on ", device.str(), ": it needs a card from sm_80 on"),
                "use --precision fp32");
  }
}

void set_product_format(Precision precision) {
  const bool short_products = precision != Precision::fp32;
  at::globalContext().setAllowTF32CuBLAS(short_products);
  at::globalContext().setAllowTF32CuDNN(short_products);
}

Autocast::Autocast(Precision precision, at::Device device)
    : on_(is_low(precision)), device_(device.type()) {
  if (!on_) return;
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  dtype_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, dtype_of(precision));
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
}

}  // namespace yoke::precision
