#pragma once

/// Building blocks that LibTorch lacks.
#include "yoke/nn/checkpoint.hpp"
