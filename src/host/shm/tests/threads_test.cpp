#include "contract.hpp"

namespace yoke::shm::testing {

INSTANTIATE_TEST_SUITE_P(Threads, Contract,
                         ::testing::Values(Setting{Ranks::threads, 1}, Setting{Ranks::threads, 2},
                                           Setting{Ranks::threads, 3}, Setting{Ranks::threads, 4},
                                           Setting{Ranks::threads, 7}),
                         setting_name);

}  // namespace yoke::shm::testing
