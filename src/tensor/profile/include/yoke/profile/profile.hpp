#pragma once

/// Room profile: what a step's time is spent on, through torch's own profiler. Needs torch.

#include "yoke/profile/recorder.hpp"
#include "yoke/profile/summary.hpp"
