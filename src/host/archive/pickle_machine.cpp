#include "pickle_machine.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::archive::pickle {
namespace {

using core::text;
using Bytes = std::span<const std::byte>;

constexpr const char* kSaveAgain = "save it again with torch.save and its default pickle protocol";

}  // namespace

Ref Machine::run() {
  while (true) {
    opcode_at_ = at_;
    const auto op = static_cast<Op>(take(1)[0]);
    if (op == Op::stop) return pop();
    if (!step_container(op)) step(op);
  }
}

Error Machine::broken(const std::string& what) const {
  return corrupt(source_, text("data.pkl, byte ", opcode_at_, ": ", what));
}

Error Machine::refused(const std::string& what, std::string hint) const {
  return unsupported(source_, text("data.pkl, byte ", opcode_at_, ": ", what), std::move(hint));
}

// ---- the bytes of the pickle

Bytes Machine::take(std::size_t count) {
  if (count > pickle_.size() - at_) throw broken("it ends in the middle");
  at_ += count;
  return pickle_.subspan(at_ - count, count);
}

std::string_view Machine::take_text(std::size_t count) {
  const Bytes bytes = take(count);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view Machine::take_line() {
  const Bytes rest = pickle_.subspan(at_);
  const auto end = std::ranges::find(rest, std::byte{'\n'});
  if (end == rest.end()) throw broken("a name without an end");
  const std::string_view line = take_text(static_cast<std::size_t>(end - rest.begin()));
  take(1);
  return line;
}

std::uint64_t Machine::take_number(std::size_t bytes) {
  std::uint64_t number = 0;
  const Bytes taken = take(bytes);
  for (std::size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<std::uint64_t>(taken[i]);
  return number;
}

// ---- the stack

Ref Machine::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) throw broken("nothing on the stack");
  return stack_.back();
}

Ref Machine::pop() {
  const Ref node = top();
  stack_.pop_back();
  return node;
}

std::vector<Ref> Machine::pop_some(std::size_t count) {
  std::vector<Ref> items(count);
  for (std::size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}

std::vector<Ref> Machine::pop_to_mark() {
  if (marks_.empty()) throw broken("no mark on the stack");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Ref> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

Items* Machine::top_items() {
  // Nodes are handed out as const; the machine, which owns them, fills containers until the end.
  return std::get_if<Items>(&const_cast<Node*>(top())->data);
}

void Machine::add_to_list(const std::vector<Ref>& items) {
  Items* list = top_items();
  if (list == nullptr || list->kind != Items::Kind::list) throw broken("items for what is no list");
  list->refs.insert(list->refs.end(), items.begin(), items.end());
}

void Machine::add_to_dict(const std::vector<Ref>& items) {
  Items* dict = top_items();
  if (dict == nullptr || !dict->is_dict()) throw broken("entries for what is no dict");
  if (items.size() % 2 != 0) throw broken("a key without a value");
  dict->refs.insert(dict->refs.end(), items.begin(), items.end());
}

// ---- the opcodes

bool Machine::step_container(Op op) {
  using Kind = Items::Kind;
  switch (op) {
    case Op::mark: marks_.push_back(stack_.size()); return true;
    case Op::empty_tuple: push(Items{Kind::tuple, {}}); return true;
    case Op::tuple1: push(Items{Kind::tuple, pop_some(1)}); return true;
    case Op::tuple2: push(Items{Kind::tuple, pop_some(2)}); return true;
    case Op::tuple3: push(Items{Kind::tuple, pop_some(3)}); return true;
    case Op::tuple: push(Items{Kind::tuple, pop_to_mark()}); return true;
    case Op::empty_list: push(Items{Kind::list, {}}); return true;
    case Op::append: add_to_list(pop_some(1)); return true;
    case Op::appends: add_to_list(pop_to_mark()); return true;
    case Op::empty_dict: push(Items{Kind::dict, {}}); return true;
    case Op::setitem: add_to_dict(pop_some(2)); return true;
    case Op::setitems: add_to_dict(pop_to_mark()); return true;
    default: return false;
  }
}

void Machine::step(Op op) {
  switch (op) {
    case Op::proto: return check_protocol(static_cast<int>(take_number(1)));
    case Op::none: return push(std::monostate{});
    case Op::new_true: return push(true);
    case Op::new_false: return push(false);
    case Op::binint: return push(std::int64_t{static_cast<std::int32_t>(take_number(4))});
    case Op::binint1: return push(static_cast<std::int64_t>(take_number(1)));
    case Op::binint2: return push(static_cast<std::int64_t>(take_number(2)));
    case Op::long1: return push_long();
    case Op::binfloat: return push_float();
    case Op::binunicode: return push(std::string(take_text(take_number(4))));
    case Op::global: return push_global();
    case Op::reduce:
    case Op::newobj: return call();
    case Op::build: return build();
    case Op::binpersid: return push_storage();
    case Op::binput: return remember(take_number(1));
    case Op::long_binput: return remember(take_number(4));
    case Op::binget: return recall(take_number(1));
    case Op::long_binget: return recall(take_number(4));
    default: break;
  }
  throw refused(text("pickle opcode ", static_cast<int>(op), " is none that torch.save writes"),
                kSaveAgain);
}

void Machine::check_protocol(int protocol) const {
  if (protocol == kProtocol) return;
  throw refused(text("pickle protocol ", protocol, ", of which only ", kProtocol, " is read"),
                kSaveAgain);
}

void Machine::push_long() {
  const std::size_t count = take_number(1);
  const Bytes bytes = take(count);
  if (count > 8)
    throw refused(text("an integer of ", 8 * count, " bits, of which at most 64 are read"));
  const bool negative = count > 0 && (bytes[count - 1] & std::byte{0x80}) != std::byte{0};
  std::uint64_t number =
      negative ? ~std::uint64_t{0} : 0;  // the sign fills the bytes that are not there
  for (std::size_t i = count; i-- > 0;) number = number << 8 | static_cast<std::uint64_t>(bytes[i]);
  push(static_cast<std::int64_t>(number));
}

void Machine::push_float() {
  std::uint64_t bits = 0;
  for (const std::byte byte : take(8)) bits = bits << 8 | static_cast<std::uint64_t>(byte);
  push(std::bit_cast<double>(bits));
}

void Machine::push_global() {
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  if (const auto global = known_global(module, name)) return push(*global);
  throw refused(text("it asks for Python's `", module.substr(0, 100), ".", name.substr(0, 100),
                     "`, which is not plain data; nothing was run"),
                "save only numbers, strings, lists, dicts and tensors, e.g. model.state_dict() "
                "instead of model");
}

/// ("storage", class, key, location, number of elements)
void Machine::push_storage() {
  const auto& args = arguments(pop(), 5);
  if (expect<std::string>(args[0], "the kind of a storage") != "storage") {
    throw refused("a persistent object that is no storage");
  }
  const Global& global = expect<Global>(args[1], "the class of a storage");
  if (global.kind != Global::Kind::storage) throw broken("the class of a storage is another name");
  const auto dtype = dtype_from_storage_class(global.name);
  if (!dtype && global.name != "UntypedStorage") {
    throw refused(text("a ", global.name, ", whose dtype Yoke does not know"));
  }
  const std::size_t size = dtype ? itemsize(*dtype) : 1;
  const std::string& key = expect<std::string>(args[2], "the key of a storage");
  const std::int64_t elements = expect<std::int64_t>(args[4], "the size of a storage");
  const Kept& kept = storage(key);
  if (std::cmp_not_equal(elements, kept.bytes.size() / size) || kept.bytes.size() % size != 0) {
    throw broken(text("storage ", key, " should have ", elements, " elements of ", size,
                      " B, its record has ", kept.bytes.size(), " B"));
  }
  push(Storage{kept, global.name});
}

const Kept& Machine::storage(std::string_view key) {
  constexpr std::size_t kWidestItem = 8;
  const auto found = storages_.find(key);
  if (found != storages_.end()) return found->second;
  return storages_.emplace(key, keep(source_, record_(key), kWidestItem)).first->second;
}

void Machine::remember(std::uint64_t slot) { memo_[slot] = top(); }

void Machine::recall(std::uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end())
    throw broken(text("reference to object ", slot, ", which was not there before"));
  stack_.push_back(found->second);
}

/// Sets attributes of an object: an OrderedDict's are a module's `_metadata`, which no reader here
/// needs.
void Machine::build() {
  pop();
  const Items* items = top_items();
  if (items == nullptr || items->kind != Items::Kind::ordered_dict)
    throw broken("attributes for what is no OrderedDict");
}

}  // namespace yoke::archive::pickle
