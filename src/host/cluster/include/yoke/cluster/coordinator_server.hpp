#pragma once

#include <functional>
#include <string>

#include "yoke/cluster/coordinator.hpp"

namespace yoke::cluster {

struct ServerOptions {
  std::string address{"127.0.0.1"};  ///< IPv4; only calls to it are taken
  int port{0};                       ///< 0: a free one
  std::string key{};                 ///< of the job; see job_key()
};

/// Serves a Coordinator over HTTP until it has finished.
///
/// `listening` hears the port once calls are taken. A request that is not authentic gets 403 and is
/// counted; one that is no message, 400; one over 1 MiB is dropped.
/// Threads: none of its own.
/// Errors: io, naming the address and what to do.
void serve_coordinator(const ServerOptions& options, CoordinatorOptions coordinator,
                       const std::function<void(int port)>& listening);

}  // namespace yoke::cluster
