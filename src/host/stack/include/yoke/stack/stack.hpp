#pragma once

/// Room stack: which torch, CUDA, cuDNN, NCCL, driver, Python and glibc fit each other (the
/// matrix), which set fits given wishes (resolve), what is wrong with a list of packages (explain),
/// and what is installed, read from files alone (inventory). No torch, and none is imported.

#include "yoke/stack/driver.hpp"
#include "yoke/stack/elf.hpp"
#include "yoke/stack/explain.hpp"
#include "yoke/stack/inventory.hpp"
#include "yoke/stack/library.hpp"
#include "yoke/stack/matrix.hpp"
#include "yoke/stack/pairs.hpp"
#include "yoke/stack/requirement.hpp"
#include "yoke/stack/resolve.hpp"
#include "yoke/stack/version.hpp"
