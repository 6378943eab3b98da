#pragma once

#include <optional>
#include <string>

#include "control.hpp"
#include "yoke/shm/team.hpp"

namespace yoke::shm {

[[nodiscard]] Call call_of(Operation operation, const Elements& elements);

/// "all-reduce", "barrier" ...
[[nodiscard]] std::string_view name(Operation operation) noexcept;

/// "all-reduce 20x10 float32", "broadcast 7 int64 from rank 0".
[[nodiscard]] std::string text_of(const Call& call);

/// "all-reduce #812 (20x10 float32, 800 B)".
[[nodiscard]] std::string text_of(const Call& call, std::uint64_t sequence);

/// The first aspect in which two ranks' calls differ: "shapes differ (20x10 vs 20x11)".
[[nodiscard]] std::optional<std::string> difference(const Call& one, const Call& other);

}  // namespace yoke::shm
