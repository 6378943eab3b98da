// The calls that a pickle asks for: each known name stands for a fixed meaning.

#include <utility>

#include "pickle_machine.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive::pickle {

using core::text;

const std::vector<Ref>& Machine::arguments(Ref node, std::size_t at_least) const {
  const Items& items = expect<Items>(node, "the tuple of arguments");
  if (items.kind != Items::Kind::tuple) throw broken("arguments that are no tuple");
  if (items.refs.size() < at_least)
    throw broken(text(items.refs.size(), " arguments in place of ", at_least));
  return items.refs;
}

std::vector<Ref> Machine::sequence(Ref node) const {
  const Items& items = expect<Items>(node, "a sequence");
  if (items.is_dict()) throw broken("a dict in place of a sequence");
  budget_.spend(items.refs.size() * sizeof(Ref));
  return items.refs;
}

std::vector<std::int64_t> Machine::integers(Ref node) const {
  std::vector<std::int64_t> numbers;
  for (const Ref item : sequence(node))
    numbers.push_back(expect<std::int64_t>(item, "a size or stride"));
  return numbers;
}

void Machine::call() {
  const Ref packed = pop();
  const Global& global = expect<Global>(pop(), "what is called");
  switch (global.kind) {
    case Global::Kind::ordered_dict:
      return call_dict(Items::Kind::ordered_dict, arguments(packed, 0));
    case Global::Kind::dict: return call_dict(Items::Kind::dict, arguments(packed, 0));
    case Global::Kind::size:
      return push(Items{Items::Kind::tuple, sequence(arguments(packed, 1)[0])});
    case Global::Kind::set:
      return push(Items{Items::Kind::list, sequence(arguments(packed, 1)[0])});
    case Global::Kind::device: return call_device(arguments(packed, 1));
    case Global::Kind::rebuild_tensor: return rebuild_tensor(arguments(packed, 4), std::nullopt);
    case Global::Kind::rebuild_tensor_v3:
      return rebuild_tensor(arguments(packed, 7), known_dtype(packed));
    case Global::Kind::parameter:
    case Global::Kind::rebuild_parameter: return rebuild_parameter(arguments(packed, 1));
    case Global::Kind::dtype:
    case Global::Kind::storage: break;
  }
  throw broken(text("a call of torch.", global.name));
}

void Machine::call_dict(Items::Kind kind, const std::vector<Ref>& args) {
  Items made{kind, {}};
  if (!args.empty()) {  // a Counter's content comes as a dict
    const Items& content = expect<Items>(args[0], "the content of a dict");
    if (!content.is_dict()) throw refused("a dict made from a list of pairs");
    budget_.spend(content.refs.size() * sizeof(Ref));
    made.refs = content.refs;
  }
  push(std::move(made));
}

void Machine::call_device(const std::vector<Ref>& args) {
  std::string device = expect<std::string>(args[0], "the name of a device");
  if (args.size() > 1) device += text(":", expect<std::int64_t>(args[1], "the index of a device"));
  budget_.spend(device.size());
  push(std::move(device));
}

/// The dtype among the arguments of _rebuild_tensor_v3.
Dtype Machine::known_dtype(Ref node) const {
  const Global& global = expect<Global>(arguments(node, 7)[6], "the dtype of a tensor");
  if (const auto dtype = dtype_from_name(global.name)) return *dtype;
  throw refused(text("a tensor of dtype ", global.name, ", which Yoke does not know"));
}

/// (storage, offset, size, stride, requires_grad, hooks), and in v3 the dtype
void Machine::rebuild_tensor(const std::vector<Ref>& args, std::optional<Dtype> dtype) {
  const auto& storage = expect<Storage>(args[0], "the storage of a tensor");
  if (!dtype) dtype = dtype_from_storage_class(storage.class_name);
  if (!dtype) throw broken(text("a tensor without a dtype over a ", storage.class_name));
  Tensor tensor{.dtype = *dtype,
                .shape = integers(args[2]),
                .strides = integers(args[3]),
                .offset = expect<std::int64_t>(args[1], "the offset of a tensor"),
                .storage = storage.kept.bytes,
                .owner = storage.kept.owner};
  tensor.requires_grad = args.size() > 4 && expect<bool>(args[4], "requires_grad");
  if (const auto problem = defect(tensor)) throw broken(*problem);
  push(std::move(tensor));
}

void Machine::rebuild_parameter(const std::vector<Ref>& args) {
  Tensor tensor = expect<Tensor>(args[0], "the data of a parameter");
  budget_.spend(2 * sizeof(std::int64_t) * tensor.shape.size());
  tensor.requires_grad = args.size() < 2 || expect<bool>(args[1], "requires_grad");
  push(std::move(tensor));
}

}  // namespace yoke::archive::pickle
