#pragma once

/// Building blocks that LibTorch lacks.
#include "yoke/nn/batch_norm.hpp"
#include "yoke/nn/checkpoint.hpp"
#include "yoke/nn/pooling.hpp"
#include "yoke/nn/stem.hpp"
