#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "yoke/core/error.hpp"

namespace yoke::archive {

/// Bytes to read and what to call them in errors.
struct Source {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void>
      owner{};         ///< keeps `bytes` alive beyond the read; null: tensors are copied out
  std::string name{};  ///< the path
};

/// "load <name>: corrupt or truncated checkpoint of 12 B: <what>", with a hint from how the bytes
/// begin.
[[nodiscard]] Error corrupt(const Source& source, const std::string& what);

/// "load <name>: <what>".
[[nodiscard]] Error unsupported(const Source& source, const std::string& what,
                                std::string hint = {});

/// An owner and a span for `bytes` of the source: they themselves where they outlive the read and
/// lie at a multiple of `alignment`, else a copy.
struct Kept {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> owner{};
};
[[nodiscard]] Kept keep(const Source& source, std::span<const std::byte> bytes,
                        std::size_t alignment);

/// Whether the text is well-formed UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace yoke::archive
