#pragma once

/// Room device: which cards this process may use, and what its host has to give, as plain values.
/// NVML is opened at run time where there is one; CUDA is never touched, so that a launcher can ask
/// before it starts ranks.

#include "yoke/device/fake_nvml.hpp"
#include "yoke/device/host.hpp"
#include "yoke/device/nvml.hpp"
#include "yoke/device/visible.hpp"
