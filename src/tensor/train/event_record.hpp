#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/train/logger.hpp"

namespace yoke::train {

// The CRC-32C (Castagnoli) of `bytes`: 0xE3069283 for "123456789".
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

// `message` as one record of a TFRecord file: its length (8 bytes), the masked CRC of the length,
// the message, the masked CRC of the message. All little-endian; a CRC is masked so that a file
// within a file does not check by chance.
[[nodiscard]] std::string tf_record(std::string_view message);

// TensorBoard's `Event` as protocol buffer bytes: wall_time = 1 (double), step = 2 (int64),
// file_version = 3 (string), summary = 5 { value = 1 { tag = 1 (string), simple_value = 2 (float) }
// }.
[[nodiscard]] std::string version_event(double wall_seconds);
// A process that begins with `step`, of this run or of one that goes on: TensorBoard drops what
// files before this one say of that step and later ones. session_log = 7 { status = 1 (START = 1)
// }.
[[nodiscard]] std::string start_event(double wall_seconds, std::int64_t step);
[[nodiscard]] std::string scalars_event(double wall_seconds, std::int64_t step,
                                        const NamedValues& values);

}  // namespace yoke::train
