#pragma once

#include <string>
#include <string_view>

namespace yoke::cli {

// Whether a Python script starts its ranks itself (torch.multiprocessing.spawn, and no word of the
// rank that a launcher gave it), so that under a launcher every rank would start all of them.
[[nodiscard]] bool starts_its_own_ranks(std::string_view source);

// Refuses such a script under several ranks, and says what to use. An unreadable file is Python's
// to complain of. Errors: invalid_argument.
void refuse_spawn_script(const std::string& script, int ranks);

}  // namespace yoke::cli
