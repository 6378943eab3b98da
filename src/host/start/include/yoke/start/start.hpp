#pragma once

/// Room start: what `yoke train`, `yoke eval` and a program's own train::main do before torch is
/// loaded: read the words, look at the machine, open the run folder, and say how the ranks are
/// started. No torch.

#include "yoke/start/data_source.hpp"
#include "yoke/start/ranks.hpp"
#include "yoke/start/request.hpp"
#include "yoke/start/run_folder.hpp"
