#pragma once

#include <optional>
#include <string>

#include "yoke/core/descriptor.hpp"

namespace yoke::launch {

// Note [Store port]
// The ranks meet at a port that rank 0 listens on. The launcher binds it before they start, with
// SO_REUSEADDR and without listening: the system then gives it to nobody who asks for any free
// port, and rank 0, whose c10d store sets SO_REUSEADDR as well, can bind it once more although it
// knows nothing of us. Rank 0 also inherits the socket (YOKE_STORE_FD) and may listen on that. For
// a program that is known to do so the launcher listens at once, so that ranks that come early wait
// in the queue and need no second try; then no other socket could bind the port, so this is not for
// foreign programs.
struct StorePort {
  core::Descriptor socket;
  int port = 0;
};

// A port on `address` (IPv4): `wanted`, or a free one outside the range from which the system takes
// ports for outgoing calls, so that none of those is in the way of the ranks' second bind.
// Errors: io, naming the port and what to do, if somebody listens there or it may not be bound.
[[nodiscard]] StorePort reserve_store_port(std::optional<int> wanted, bool listen,
                                           const std::string& address = "127.0.0.1");

}  // namespace yoke::launch
