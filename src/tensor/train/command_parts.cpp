#include "command_parts.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <system_error>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/version.h>

#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"

namespace yoke::train {

void use_threads(const settings::TrainSettings& values) {
  if (values.threads > 0) at::set_num_threads(values.threads);
}

at::Device home_device(comm::World& world, const settings::TrainSettings& values) {
  const at::Device own = world.device();
  if (values.parallel != settings::Parallel::dp || values.device_ids.empty() || !own.is_cuda())
    return own;
  return {at::kCUDA, static_cast<at::DeviceIndex>(values.device_ids.front())};
}

data::DataLoaderOptions loader_options(const settings::TrainSettings& values) {
  data::DataLoaderOptions options{.batch_size = values.batch_size, .seed = values.seed};
  if (values.workers) options.num_workers = static_cast<unsigned>(*values.workers);
  return options;
}

data::DataLoader make_loader(std::shared_ptr<const data::Dataset> images, comm::World& world,
                             const data::DataLoaderOptions& options,
                             const settings::TrainSettings& values) {
  if (world.size() > 1) return {std::move(images), world, options};
  return {std::move(images), data::Placement{.device = home_device(world, values)}, options};
}

precision::Precision precision_for(const settings::TrainSettings& values, at::Device device) {
  using settings::Precision;
  switch (values.precision) {
    case Precision::fp32: return precision::Precision::fp32;
    case Precision::tf32: return precision::Precision::tf32;
    case Precision::bf16: return precision::Precision::bf16;
    case Precision::fp16: return precision::Precision::fp16;
    case Precision::automatic: break;
  }
  return precision::automatic(device);
}

TrainerOptions trainer_options(const settings::TrainSettings& values, comm::World& world) {
  TrainerOptions options{.device_ids = values.device_ids};
  switch (values.parallel) {
    case settings::Parallel::ddp: options.parallel = Parallel::ddp; break;
    case settings::Parallel::dp: options.parallel = Parallel::dp; break;
    case settings::Parallel::none: options.parallel = Parallel::none; break;
  }
  options.precision = precision_for(values, home_device(world, values));
  options.capture = values.capture;
  options.channels_last = values.channels_last;
  return options;
}

double value_of(const NamedValues& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& value) { return value.first == name; });
  if (found == values.end()) throw Error(Code::internal, "no value named " + name);
  return found->second;
}

void add_versions(core::Json& result) {
  result["yoke"] = YOKE_VERSION;
  result["torch"] = TORCH_VERSION;
}

void print(const std::string& text) {
  std::signal(SIGPIPE,
              SIG_IGN);  // of no use from here on; `| head` must not fail a run that is done
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) return;  // the reader has seen enough
    if (n < 0)
      throw Error(Code::io, "write to standard output: " + std::generic_category().message(errno));
    written += static_cast<std::size_t>(n);
  }
}

}  // namespace yoke::train
