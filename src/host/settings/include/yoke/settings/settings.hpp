#pragma once

/// Room settings: one table of options that reads flags, YOKE_* variables, recipes and the site
/// file, and keeps where each value came from. The front program and the ranks use the same table,
/// so there is no torch in it.

#include "yoke/settings/report.hpp"
#include "yoke/settings/resolve.hpp"
#include "yoke/settings/schema.hpp"
#include "yoke/settings/train_settings.hpp"
