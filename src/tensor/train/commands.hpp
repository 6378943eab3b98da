#pragma once

#include "yoke/core/environment.hpp"
#include "yoke/start/request.hpp"
#include "yoke/train/main.hpp"

namespace yoke::comm {
class World;
}

namespace yoke::train {

// What one rank of `yoke train` does, from data to saved weights. Returns the exit code: 0, or
// 128+n where signal n asked the run to stop and it was saved.
int train_on_rank(comm::World& world, const start::Request& request, const ModelSet& models,
                  const core::EnvironmentMap& variables);

// What one rank of `yoke eval` does.
void evaluate_on_rank(comm::World& world, const start::Request& request, const ModelSet& models);

}  // namespace yoke::train
