#include "pickle_writer.hpp"

#include <bit>
#include <concepts>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "source.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "zip_format.hpp"

namespace yoke::archive {
namespace {

using core::text;
using pickle::Op;

constexpr std::size_t kDeepest = 100;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::invalid_argument, "write checkpoint: " + what);
}

template <class... Alternatives>
struct Visitor : Alternatives... {
  using Alternatives::operator()...;
};

void check_keys(const Dict& dict) {
  std::set<Value::Alternatives, bool (*)(const Value::Alternatives&, const Value::Alternatives&)>
      seen([](const auto& a, const auto& b) {
        if (a.index() != b.index()) return a.index() < b.index();
        return std::visit(
            [&]<class T>(const T& key) {
              if constexpr (std::totally_ordered<T>) return key < std::get<T>(b);
              return false;
            },
            a);
      });
  for (const Dict::Entry& entry : dict.entries) {
    const std::size_t kind = entry.key.data().index();
    constexpr std::size_t kPlainKinds = 5;  // none, bool, int, float, string
    if (kind >= kPlainKinds) refuse(text("a dict with a ", entry.key.kind(), " as key"));
    if (seen.insert(entry.key.data()).second) continue;
    const auto* name = entry.key.get_if<std::string>();
    refuse(name != nullptr ? "a dict with the key \"" + *name + "\" twice"
                           : text("a dict with one ", entry.key.kind(), " key twice"));
  }
}

}  // namespace

PickleWriter::PickleWriter() {
  put(Op::proto);
  bytes_ += static_cast<char>(pickle::kProtocol);
}

void PickleWriter::write(const Value& value) { write_value(value, 0); }

std::string PickleWriter::finish() {
  put(Op::stop);
  return std::move(bytes_);
}

void PickleWriter::write_value(const Value& value, std::size_t depth) {
  if (depth > kDeepest) refuse(text("a value of more than ", kDeepest, " levels"));
  std::visit(Visitor{
                 [&](std::monostate) { put(Op::none); },
                 [&](bool flag) { put(flag ? Op::new_true : Op::new_false); },
                 [&](std::int64_t number) { write_integer(number); },
                 [&](double number) { write_float(number); },
                 [&](const std::string& string) { write_string(string); },
                 [&](const Tensor& tensor) { write_tensor(tensor); },
                 [&](const List& list) { write_list(list, depth); },
                 [&](const Tuple& tuple) { write_tuple(tuple.items, depth); },
                 [&](const Dict& dict) { write_dict(dict, depth); },
             },
             value.data());
}

void PickleWriter::write_integer(std::int64_t number) {
  if (number >= 0 && number <= 0xFF) {
    put(Op::binint1);
    zip::put(bytes_, static_cast<std::uint8_t>(number));
  } else if (number >= 0 && number <= 0xFFFF) {
    put(Op::binint2);
    zip::put(bytes_, static_cast<std::uint16_t>(number));
  } else if (std::in_range<std::int32_t>(number)) {
    put(Op::binint);
    zip::put(bytes_, static_cast<std::uint32_t>(number));
  } else {
    put(Op::long1);
    zip::put(bytes_, std::uint8_t{8}, static_cast<std::uint64_t>(number));
  }
}

void PickleWriter::write_float(double number) {
  put(Op::binfloat);
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift & 0xFF);
}

void PickleWriter::write_string(const std::string& string) {
  if (!is_utf8(string)) refuse("a string that is not UTF-8");
  if (string.size() > std::numeric_limits<std::uint32_t>::max())
    refuse("a string of 4 GiB or more");
  const std::string key = "s" + string;
  if (recalled(key)) return;
  put(Op::binunicode);
  zip::put(bytes_, static_cast<std::uint32_t>(string.size()));
  bytes_ += string;
  remember(key);
}

void PickleWriter::write_global(std::string_view module, std::string_view name) {
  const std::string key = text("g", module, ".", name);
  if (recalled(key)) return;
  put(Op::global);
  bytes_ += text(module, "\n", name, "\n");
  remember(key);
}

bool PickleWriter::recalled(const std::string& key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) return false;
  if (found->second <= 0xFF) {
    put(Op::binget);
    zip::put(bytes_, static_cast<std::uint8_t>(found->second));
  } else {
    put(Op::long_binget);
    zip::put(bytes_, found->second);
  }
  return true;
}

void PickleWriter::remember(std::string key) {
  const auto slot = static_cast<std::uint32_t>(memo_.size());
  if (slot <= 0xFF) {
    put(Op::binput);
    zip::put(bytes_, static_cast<std::uint8_t>(slot));
  } else {
    put(Op::long_binput);
    zip::put(bytes_, slot);
  }
  memo_.emplace(std::move(key), slot);
}

void PickleWriter::write_integers(const std::vector<std::int64_t>& numbers) {
  put(Op::mark);
  for (const std::int64_t number : numbers) write_integer(number);
  put(Op::tuple);
}

void PickleWriter::write_list(const List& list, std::size_t depth) {
  put(Op::empty_list);
  if (list.items.empty()) return;
  put(Op::mark);
  for (const Value& item : list.items) write_value(item, depth + 1);
  put(Op::appends);
}

void PickleWriter::write_tuple(const std::vector<Value>& items, std::size_t depth) {
  put(Op::mark);
  for (const Value& item : items) write_value(item, depth + 1);
  put(Op::tuple);
}

void PickleWriter::write_dict(const Dict& dict, std::size_t depth) {
  check_keys(dict);
  if (dict.ordered) {
    write_empty_ordered_dict();
  } else {
    put(Op::empty_dict);
  }
  if (dict.entries.empty()) return;
  put(Op::mark);
  for (const Dict::Entry& entry : dict.entries) {
    write_value(entry.key, depth + 1);
    write_value(entry.value, depth + 1);
  }
  put(Op::setitems);
}

void PickleWriter::write_empty_ordered_dict() {
  write_global("collections", "OrderedDict");
  put(Op::empty_tuple);
  put(Op::reduce);
}

void PickleWriter::write_tensor(const Tensor& tensor) {
  if (const auto problem = defect(tensor)) refuse(*problem);
  const Place where = place(tensor);
  const std::size_t bytes = nbytes(storages_[where.storage]);

  write_global("torch._utils", "_rebuild_tensor_v2");
  put(Op::mark);
  put(Op::mark);
  write_string("storage");
  write_global("torch", storage_class(tensor.dtype));
  write_string(std::to_string(where.storage));
  write_string("cpu");
  write_integer(static_cast<std::int64_t>(bytes / itemsize(tensor.dtype)));
  put(Op::tuple);
  put(Op::binpersid);
  write_integer(0);  // offset
  write_integers(tensor.shape);
  write_integers(where.strides);
  put(tensor.requires_grad ? Op::new_true : Op::new_false);
  write_empty_ordered_dict();  // backward hooks
  put(Op::tuple);
  put(Op::reduce);
}

PickleWriter::Place PickleWriter::place(const Tensor& tensor) {
  const std::span<const std::byte> reached = reach(tensor);
  // A view that has as many elements as it reaches, or more, has no holes: its strides stay.
  const bool dense = nbytes(tensor) >= reached.size();
  Place where{.storage = storages_.size(),
              .strides = dense ? tensor.strides : contiguous_strides(tensor.shape)};
  Key key{reached.data(), reached.size(), tensor.dtype, {}, {}};
  if (!dense) {
    std::get<3>(key) = tensor.shape;
    std::get<4>(key) = tensor.strides;
  }
  if (!reached.empty()) {  // tensors without elements have no address to share
    const auto [known, added] = known_storages_.emplace(std::move(key), where.storage);
    where.storage = known->second;
    if (!added) return where;
  }
  const auto elements = static_cast<std::int64_t>(reached.size() / itemsize(tensor.dtype));
  storages_.push_back(dense ? contiguous_tensor(tensor.dtype, {elements}, reached) : tensor);
  return where;
}

}  // namespace yoke::archive
