#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "yoke/archive/tensor.hpp"

namespace yoke::archive {

class Value;

struct List {
  std::vector<Value> items;  // without {}, which would need Value to be complete here
};

struct Tuple {
  std::vector<Value> items;
};

/// A Python dict or OrderedDict: keeps the order of insertion. Keys are strings, integers, floats,
/// bools or None.
struct Dict {
  struct Entry;
  std::vector<Entry> entries;
  bool ordered = false;  ///< written as collections.OrderedDict, which is what a state_dict is

  /// Appends. Requires: the key is not there yet; writers refuse a dict that holds a key twice.
  void set(Value key, Value value);

  /// The value under the key, or null.
  /// Cost: linear in the number of entries.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] const Value* find(std::int64_t key) const;

  /// The value under the key.
  /// Errors: corrupt_data, naming the key and those that are there.
  [[nodiscard]] const Value& at(std::string_view key) const;
};

/// Plain Python data: what a checkpoint may hold and the safe `torch.load(weights_only=True)`
/// reads.
///
///   Value group = Dict{};
///   group.as<Dict>().set("lr", 0.1);
///   const double lr = group.as<Dict>().at("lr").number();
///
/// Threads: a value. Copies are deep, but for the storages of tensors.
class Value {
 public:
  using Alternatives = std::variant<std::monostate, bool, std::int64_t, double, std::string, Tensor,
                                    List, Tuple, Dict>;

  Value() = default;  ///< None
  template <std::same_as<bool> Bool>
  Value(Bool value) : data_(value) {}  // a template, so that no pointer turns into a bool
  template <std::integral Int>
    requires(!std::same_as<Int, bool> &&
             (sizeof(Int) < sizeof(std::int64_t) || std::signed_integral<Int>))
  Value(Int value) : data_(static_cast<std::int64_t>(value)) {}
  Value(double value) : data_(value) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(Tensor value) : data_(std::move(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Tuple value) : data_(std::move(value)) {}
  Value(Dict value) : data_(std::move(value)) {}

  /// The content if it has the type, else null.
  template <class T>
  [[nodiscard]] const T* get_if() const noexcept {
    return std::get_if<T>(&data_);
  }

  /// The content.
  /// Errors: corrupt_data, e.g. "expected a value of kind int, found dict".
  template <class T>
  [[nodiscard]] const T& as() const {
    if (const T* content = std::get_if<T>(&data_)) return *content;
    mismatch(Value(T{}).kind());
  }
  template <class T>
  [[nodiscard]] T& as() {
    return const_cast<T&>(std::as_const(*this).template as<T>());
  }

  /// A float, an int or a bool as a float: Python writes `lr=1` as an int.
  /// Errors: as as().
  [[nodiscard]] double number() const;

  /// The items of a list or a tuple: which of them Python wrote seldom matters.
  /// Errors: as as().
  [[nodiscard]] const std::vector<Value>& items() const;

  [[nodiscard]] bool is_none() const noexcept { return data_.index() == 0; }
  [[nodiscard]] std::string_view kind() const noexcept;  ///< "none", "int", "dict", ...
  [[nodiscard]] const Alternatives& data() const noexcept { return data_; }

 private:
  [[noreturn]] void mismatch(std::string_view expected) const;

  Alternatives data_;
};

struct Dict::Entry {
  Value key;
  Value value;
};

/// The OrderedDict that a module's state_dict is.
[[nodiscard]] Value state_dict(std::span<const NamedTensor> tensors);

/// The tensors of such a dict (plain or ordered), in its order.
/// Errors: corrupt_data, naming the first entry that is no tensor, or the kind if it is no dict.
[[nodiscard]] std::vector<NamedTensor> named_tensors(const Value& value);

}  // namespace yoke::archive
