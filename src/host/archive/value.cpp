#include "yoke/archive/value.hpp"

#include <array>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

constexpr std::array<std::string_view, 9> kKinds{"none",   "bool", "int",   "float", "string",
                                                 "tensor", "list", "tuple", "dict"};

template <class T>
const Value* find_key(const Dict& dict, const T& key) {
  for (const Dict::Entry& entry : dict.entries) {
    const auto* own = entry.key.template get_if<T>();
    if (own != nullptr && *own == key) return &entry.value;
  }
  return nullptr;
}

std::string some_keys(const Dict& dict) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> keys;
  for (const Dict::Entry& entry : dict.entries) {
    if (keys.size() == kMost) {
      keys.push_back(core::text("... (", dict.entries.size(), " in all)"));
      break;
    }
    const auto* key = entry.key.get_if<std::string>();
    keys.push_back(key != nullptr ? *key : std::string(entry.key.kind()));
  }
  return core::joined(keys);
}

}  // namespace

void Dict::set(Value key, Value value) { entries.push_back({std::move(key), std::move(value)}); }

const Value* Dict::find(std::string_view key) const { return find_key(*this, std::string(key)); }

const Value* Dict::find(std::int64_t key) const { return find_key(*this, key); }

const Value& Dict::at(std::string_view key) const {
  if (const Value* value = find(key)) return *value;
  throw Error(Code::corrupt_data,
              core::text("no entry \"", key, "\"; there are: ", some_keys(*this)));
}

std::string_view Value::kind() const noexcept { return kKinds[data_.index()]; }

void Value::mismatch(std::string_view expected) const {
  throw Error(Code::corrupt_data,
              core::text("expected a value of kind ", expected, ", found ", kind()));
}

double Value::number() const {
  if (const auto* integer = get_if<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* flag = get_if<bool>()) return *flag ? 1.0 : 0.0;
  return as<double>();
}

const std::vector<Value>& Value::items() const {
  if (const auto* tuple = get_if<Tuple>()) return tuple->items;
  return as<List>().items;
}

Value state_dict(std::span<const NamedTensor> tensors) {
  Dict dict;
  dict.ordered = true;
  for (const NamedTensor& named : tensors) dict.set(named.name, named.tensor);
  return dict;
}

std::vector<NamedTensor> named_tensors(const Value& value) {
  std::vector<NamedTensor> tensors;
  for (const Dict::Entry& entry : value.as<Dict>().entries) {
    const auto* key = entry.key.get_if<std::string>();
    const auto* tensor = entry.value.get_if<Tensor>();
    if (key == nullptr || tensor == nullptr) {
      throw Error(Code::corrupt_data,
                  core::text("not a state_dict: entry ",
                             key != nullptr ? "\"" + *key + "\"" : "with a key that",
                             key != nullptr ? " holds a " : " is a ",
                             key != nullptr ? entry.value.kind() : entry.key.kind()),
                  "it may lie inside, e.g. under \"model\" or \"state_dict\"");
    }
    tensors.push_back({*key, *tensor});
  }
  return tensors;
}

}  // namespace yoke::archive
