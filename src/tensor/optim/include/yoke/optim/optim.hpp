#pragma once

/// Optimizers that change parameters by their gradients, with PyTorch's arithmetic and state
/// layout.
#include "yoke/optim/adamw.hpp"
#include "yoke/optim/sgd.hpp"
