#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "source.hpp"
#include "yoke/archive/tensor.hpp"

namespace yoke::archive::pickle {

// Note [Nodes and values]
// A pickle refers back to objects that it made before, also to lists and
// dicts that it fills later.
// So it is read into nodes that refer to each other, and the finished node is copied into a Value,
// which is a tree. An object that stands in two places is copied twice; since a small pickle can so
// name 2^50 objects, all copying draws on a budget, and since an object can contain itself, the
// tree has a depth.

struct Node;
using Ref = const Node*;

/// What a name that the pickle asks for means.
struct Global {
  enum class Kind {
    ordered_dict,
    dict,
    size,
    device,
    set,
    parameter,
    rebuild_tensor,
    rebuild_tensor_v3,
    rebuild_parameter,
    dtype,
    storage,
  };
  Kind kind{};
  std::string_view name{};  ///< of the dtype or storage class
};

/// The meaning of `module.name`; nothing for a name that is not plain data.
[[nodiscard]] std::optional<Global> known_global(std::string_view module, std::string_view name);

struct Storage {
  Kept kept{};
  std::string_view class_name{};
};

struct Items {
  enum class Kind { list, tuple, dict, ordered_dict };
  Kind kind{};
  std::vector<Ref> refs{};  ///< of a dict: key, value, key, value, ...

  [[nodiscard]] bool is_dict() const noexcept {
    return kind == Kind::dict || kind == Kind::ordered_dict;
  }
};

struct Node {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Items, Global, Storage,
               Tensor>
      data;

  [[nodiscard]] std::string_view kind() const noexcept;
};

/// Bounds what is copied; see Note [Nodes and values].
class Budget {
 public:
  Budget(const Source& source, std::size_t pickle_bytes);

  /// Errors: corrupt_data once more is spent than a checkpoint needs.
  void spend(std::size_t bytes);

 private:
  const Source& source_;
  std::size_t left_;
};

}  // namespace yoke::archive::pickle
