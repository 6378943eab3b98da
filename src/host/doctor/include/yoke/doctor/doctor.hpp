#pragma once

/// Room doctor: whether a machine can train and what to do if not (checks), what an error text
/// means here (explain), which libraries a process has (process), whether an image would run
/// (image). Everything is read from files and NVML; torch is never imported and CUDA never opened.

#include "yoke/doctor/check.hpp"
#include "yoke/doctor/explain.hpp"
#include "yoke/doctor/image.hpp"
#include "yoke/doctor/machine.hpp"
#include "yoke/doctor/process.hpp"
