#pragma once

/// Room launch: starts the ranks of one machine, watches them, stops them and says why they failed.
/// No torch.

#include "yoke/launch/failure.hpp"
#include "yoke/launch/hang_watch.hpp"
#include "yoke/launch/rank_count.hpp"
#include "yoke/launch/self.hpp"
#include "yoke/launch/supervise.hpp"
