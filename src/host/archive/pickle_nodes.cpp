#include "pickle_nodes.hpp"

#include <array>
#include <map>
#include <set>
#include <utility>

namespace yoke::archive::pickle {

std::optional<Global> known_global(std::string_view module, std::string_view name) {
  using Kind = Global::Kind;
  static const std::map<std::pair<std::string_view, std::string_view>, Kind> known{
      {{"collections", "OrderedDict"}, Kind::ordered_dict},
      {{"collections", "Counter"}, Kind::dict},
      {{"torch", "Size"}, Kind::size},
      {{"torch", "device"}, Kind::device},
      {{"__builtin__", "set"}, Kind::set},
      {{"builtins", "set"}, Kind::set},
      {{"torch.nn.parameter", "Parameter"}, Kind::parameter},
      {{"torch._utils", "_rebuild_tensor"}, Kind::rebuild_tensor},
      {{"torch._utils", "_rebuild_tensor_v2"}, Kind::rebuild_tensor},
      {{"torch._utils", "_rebuild_tensor_v3"}, Kind::rebuild_tensor_v3},
      {{"torch._utils", "_rebuild_parameter"}, Kind::rebuild_parameter},
      {{"torch._utils", "_rebuild_parameter_with_state"}, Kind::rebuild_parameter},
      {{"torch.storage", "UntypedStorage"}, Kind::storage},
  };
  // PyTorch's dtypes beyond archive::Dtype, so that a tensor of one is refused by its name.
  static const std::set<std::string_view> other_dtypes{
      "complex32",      "complex64",        "complex128",      "uint16",      "uint32",
      "uint64",         "float8_e4m3fn",    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
      "float8_e8m0fnu", "float4_e2m1fn_x2", "qint8",           "quint8",      "qint32"};
  if (const auto found = known.find({module, name}); found != known.end()) {
    return Global{found->second, found->first.second};
  }
  if (module != "torch") return std::nullopt;
  if (name.ends_with("Storage")) return Global{Kind::storage, name};
  if (dtype_from_name(name) || other_dtypes.contains(name)) return Global{Kind::dtype, name};
  return std::nullopt;
}

std::string_view Node::kind() const noexcept {
  constexpr std::array<std::string_view, 9> kKinds{
      "none", "bool", "int", "float", "string", "container", "name", "storage", "tensor"};
  return kKinds[data.index()];
}

Budget::Budget(const Source& source, std::size_t pickle_bytes) : source_(source) {
  constexpr std::size_t kFree = 64 << 20;
  constexpr std::size_t kPerByte = 64;
  left_ = kFree + kPerByte * pickle_bytes;
}

void Budget::spend(std::size_t bytes) {
  if (bytes > left_) {
    throw corrupt(source_, "data.pkl repeats itself into more memory than a checkpoint needs");
  }
  left_ -= bytes;
}

}  // namespace yoke::archive::pickle
