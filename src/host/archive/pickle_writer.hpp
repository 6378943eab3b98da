#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pickle_format.hpp"
#include "yoke/archive/value.hpp"

namespace yoke::archive {

/// Turns a Value into the pickle of a checkpoint and the storages that it names "0", "1", ...
///
///   PickleWriter writer;
///   writer.write(value);
///   zip.add("data.pkl", writer.finish());
///   for (const Tensor& storage : writer.storages()) ...
///
/// Errors: invalid_argument as write_pytorch.
class PickleWriter {
 public:
  PickleWriter();

  void write(const Value& value);

  /// The pickle. Once, after one write().
  [[nodiscard]] std::string finish();

  /// What each storage holds: the row-major bytes of a tensor. Borrows from the values written.
  [[nodiscard]] const std::vector<Tensor>& storages() const noexcept { return storages_; }

 private:
  /// Where a tensor's elements are in the file.
  struct Place {
    std::size_t storage;
    std::vector<std::int64_t> strides;
  };
  /// Address and length of what is reached, dtype; of a view with holes also shape and strides.
  using Key = std::tuple<const std::byte*, std::size_t, Dtype, std::vector<std::int64_t>,
                         std::vector<std::int64_t>>;

  void write_value(const Value& value, std::size_t depth);
  void write_integer(std::int64_t number);
  void write_float(double number);
  void write_string(const std::string& string);
  void write_global(std::string_view module, std::string_view name);
  void write_integers(const std::vector<std::int64_t>& numbers);
  void write_list(const List& list, std::size_t depth);
  void write_tuple(const std::vector<Value>& items, std::size_t depth);
  void write_dict(const Dict& dict, std::size_t depth);
  void write_empty_ordered_dict();
  void write_tensor(const Tensor& tensor);
  [[nodiscard]] Place place(const Tensor& tensor);

  bool recalled(const std::string& key);
  void remember(std::string key);
  void put(pickle::Op op) { bytes_ += static_cast<char>(op); }

  std::string bytes_;
  std::map<std::string, std::uint32_t> memo_;  ///< strings and names that are in the pickle already
  std::vector<Tensor> storages_;
  std::map<Key, std::size_t> known_storages_;
};

}  // namespace yoke::archive
