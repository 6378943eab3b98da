#pragma once

/// Room shm: collectives between the ranks of one host on plain shared memory, processes or
/// threads. No torch. docs/shm.md tells how it works and what it costs.

#include "yoke/shm/dtype.hpp"
#include "yoke/shm/reduction.hpp"
#include "yoke/shm/shared_buffer.hpp"
#include "yoke/shm/team.hpp"
