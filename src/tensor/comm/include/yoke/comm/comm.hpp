#pragma once

/// Room comm: the ranks of a run (World), their collectives on tensors (Group) over NCCL, Gloo,
/// shared memory or threads, and what a card holds. Needs torch.

#include "yoke/comm/device.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/comm/world.hpp"
