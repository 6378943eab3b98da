#pragma once

/// Room core: errors, words, files, text, the clock, child processes, the environment contract and
/// the telemetry record: what every other room stands on. No torch.

#include "yoke/core/clock.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/descriptor.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/telemetry_reader.hpp"
#include "yoke/core/text.hpp"
