#pragma once

#include "yoke/core/environment.hpp"
#include "yoke/start/request.hpp"
#include "yoke/train/main.hpp"

namespace yoke::comm {
class World;
}

namespace yoke::train {

// What one rank of `yoke train` does, from data to saved weights.
void train_on_rank(comm::World& world, const start::Request& request, const ModelSet& models,
                   const core::EnvironmentMap& variables);

// What one rank of `yoke eval` does.
void evaluate_on_rank(comm::World& world, const start::Request& request, const ModelSet& models);

}  // namespace yoke::train
