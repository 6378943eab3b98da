#pragma once

/// Room train: yoke::run, the training loop with its hooks and logs, and `yoke train` as a
/// function. Needs torch.

#include "yoke/train/file_loggers.hpp"
#include "yoke/train/main.hpp"
#include "yoke/train/metrics.hpp"
#include "yoke/train/progress.hpp"
#include "yoke/train/run.hpp"
#include "yoke/train/step.hpp"
#include "yoke/train/trainer.hpp"
