#pragma once

/// Optimizers that change parameters by their gradients, with PyTorch's arithmetic and state
/// layout, and what goes with them: schedules of the learning rate, clipping, averaged weights.
#include "yoke/optim/adamw.hpp"
#include "yoke/optim/clip_grad_norm.hpp"
#include "yoke/optim/exponential_moving_average.hpp"
#include "yoke/optim/schedule.hpp"
#include "yoke/optim/sgd.hpp"
