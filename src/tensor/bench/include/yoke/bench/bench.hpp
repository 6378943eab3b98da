#pragma once

/// Room bench: times training steps on data that lies ready, and says where their time goes. Needs
/// torch.

#include "yoke/bench/step_bench.hpp"
#include "yoke/bench/step_report.hpp"
