#pragma once

#include <optional>
#include <string>

#include "yoke/core/json.hpp"
#include "yoke/stack/stack.hpp"

namespace yoke::cli {

// What is installed, with what its libraries tell.
struct Installed {
  stack::Inventory inventory{};
  std::optional<stack::TorchLibraries> libraries{};
  std::optional<stack::LibraryVersion> cudnn{};
  std::optional<stack::LibraryVersion> nccl{};
};

[[nodiscard]] Installed read_installed(const stack::Matrix& matrix,
                                       const stack::PythonPlace& python);

// What `yoke stack show --installed` prints; docs/cmd/stack.md has the fields.
[[nodiscard]] std::string installed_text(const Installed& installed);
[[nodiscard]] core::Json installed_json(const Installed& installed);

}  // namespace yoke::cli
