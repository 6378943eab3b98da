#pragma once

/// Room precision: which number format a step computes in, autocast, gradient scaling. Needs torch.

#include "yoke/precision/autocast.hpp"
#include "yoke/precision/grad_scaler.hpp"
