#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "yoke/core/clock.hpp"
#include "yoke/train/logger.hpp"

namespace yoke::train {

// A run that goes on from a checkpoint adds to what is in the folder; any other replaces it.

/// One JSON object a line, each with "version": 1 (docs/train.md has the fields). A killed run
/// leaves whole lines.
[[nodiscard]] std::shared_ptr<Logger> json_logger(
    const std::filesystem::path& file, const core::Clock& clock = core::SystemClock::instance());

/// A table with one row an epoch; columns are the names that some epoch had. Rewritten in one piece
/// after each epoch.
[[nodiscard]] std::shared_ptr<Logger> csv_logger(const std::filesystem::path& file);

/// A TensorBoard event file `events.out.tfevents.<seconds>.<host>.<pid>.0` in `folder`.
/// Cost: a write() of about 60 bytes a value.
[[nodiscard]] std::shared_ptr<Logger> tensorboard_logger(
    const std::filesystem::path& folder, const core::Clock& clock = core::SystemClock::instance());

}  // namespace yoke::train
