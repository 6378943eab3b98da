#include "surroundings.hpp"

#include <algorithm>
#include <mutex>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

namespace yoke::nn {
namespace {

at::Tensor generator_state(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(at::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

Surroundings Surroundings::now(const std::vector<at::Tensor>& inputs, bool with_generators) {
  std::vector<at::Device> devices;
  if (with_generators) devices.emplace_back(at::kCPU);
  for (const at::Tensor& input : inputs) {
    const bool known = std::ranges::find(devices, input.device()) != devices.end();
    if (with_generators && input.is_cuda() && !known) devices.push_back(input.device());
  }
  return of(std::move(devices));
}

Surroundings Surroundings::replaced() const {
  std::vector<at::Device> devices;
  for (const auto& [device, state] : generators_) devices.push_back(device);
  return of(std::move(devices));
}

Surroundings Surroundings::of(std::vector<at::Device> devices) {
  Surroundings found;
  for (const at::Device device : devices) {
    found.generators_.emplace_back(device, generator_state(device));
  }
  for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
    found.autocast_.push_back({device, at::autocast::is_autocast_enabled(device),
                               at::autocast::get_autocast_dtype(device)});
  }
  found.autocast_caches_ = at::autocast::is_autocast_cache_enabled();
  return found;
}

void Surroundings::restore() const {
  for (const auto& [device, state] : generators_) set_generator_state(device, state);
  for (const auto& [device, enabled, dtype] : autocast_) {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
  }
  at::autocast::set_autocast_cache_enabled(autocast_caches_);
}

Within::Within(const Surroundings& surroundings) : before_(surroundings.replaced()) {
  surroundings.restore();
}

Within::~Within() { before_.restore(); }

}  // namespace yoke::nn
