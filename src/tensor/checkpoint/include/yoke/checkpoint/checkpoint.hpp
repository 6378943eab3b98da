#pragma once

/// Room checkpoint: the state of modules and runs to and from files, in the formats of room
/// archive: what Python's torch.save writes and torch.load(weights_only=True) reads, and
/// safetensors.

#include "yoke/checkpoint/convert.hpp"
#include "yoke/checkpoint/files.hpp"
#include "yoke/checkpoint/manager.hpp"
#include "yoke/checkpoint/state_dict.hpp"
