#pragma once

#include <memory>
#include <optional>
#include <string>

#include "yoke/comm/world.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/json.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/settings/train_settings.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {

// --threads, also where OpenMP was there before its variable.
void use_threads(const settings::TrainSettings& values);

// The device on which a rank's model and batches lie: its own, but for DataParallel the first of
// --device-ids.
[[nodiscard]] at::Device home_device(comm::World& world, const settings::TrainSettings& values);

[[nodiscard]] data::DataLoaderOptions loader_options(const settings::TrainSettings& values);
[[nodiscard]] data::DataLoader make_loader(std::shared_ptr<const data::Dataset> images,
                                           comm::World& world,
                                           const data::DataLoaderOptions& options,
                                           const settings::TrainSettings& values);

// What `look` gives; what there is to say of it, rank 0 says.
template <class Look>
auto said_once(const comm::World& world, const Look& look) {
  std::optional<core::Hush> hush;
  if (!world.is_main()) hush.emplace();
  return look();
}

// --precision on `device`.
[[nodiscard]] precision::Precision precision_for(const settings::TrainSettings& values,
                                                 at::Device device);

// Parallel, devices, precision, capture and metrics; the rest is training's.
[[nodiscard]] TrainerOptions trainer_options(const settings::TrainSettings& values,
                                             comm::World& world);

// The value of that name. Requires: it is there.
[[nodiscard]] double value_of(const NamedValues& values, const std::string& name);

// Versions of Yoke and torch at the end of a result.
void add_versions(core::Json& result);

// Writes to standard output; rank 0 calls it once. Errors: io.
void print(const std::string& text);

}  // namespace yoke::train
