#pragma once

/// Room archive: tensors and plain Python data to and from files, as byte spans: safetensors, and
/// what Python's torch.save writes and torch.load reads. No torch.

#include "yoke/archive/dtype.hpp"
#include "yoke/archive/pytorch.hpp"
#include "yoke/archive/safetensors.hpp"
#include "yoke/archive/sealed_folder.hpp"
#include "yoke/archive/tensor.hpp"
#include "yoke/archive/value.hpp"
#include "yoke/archive/weights.hpp"
