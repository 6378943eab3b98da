#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "source.hpp"
#include "yoke/archive/value.hpp"

namespace yoke::archive {

/// Reads the pickle of a checkpoint into a Value. Nothing is imported or called: the few names that
/// torch.save writes stand for fixed meanings, any other is an error that names it.
///
/// `record` gives the bytes of the storage with that key; it is called once per storage.
/// Errors: corrupt_data, unsupported.
/// Cost: memory within 64 MiB + 64 times the pickle, whatever it says.
[[nodiscard]] Value read_pickle(
    const Source& source, std::span<const std::byte> pickle,
    const std::function<std::span<const std::byte>(std::string_view key)>& record);

}  // namespace yoke::archive
