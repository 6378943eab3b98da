#pragma once

#include <string>

namespace yoke::launch {

/// Where this machine's ranks stand in a job of several machines.
struct Placement {
  int first_rank{0};  ///< of this machine's
  int world_size{0};  ///< over all machines; 0: this machine's ranks are all
  int node_rank{0};
  int node_count{1};
  std::string master_address{"127.0.0.1"};  ///< of the first machine, as the others reach it
  int master_port{0};                       ///< that the first machine has bound; 0: this machine
                                            ///< is the first, and binds one itself
  int attempt{0};                           ///< restarts of the job so far, caused by any machine
};

}  // namespace yoke::launch
