#include "pickle_reader.hpp"

#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "pickle_machine.hpp"
#include "pickle_nodes.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

using core::text;
using namespace pickle;  // the nodes

constexpr std::size_t kDeepest = 100;  // levels of lists, tuples and dicts

/// Copies nodes into a Value; see Note [Nodes and values].
class Tree {
 public:
  Tree(const Source& source, Budget& budget) : source_(source), budget_(budget) {}

  Value copy(Ref node, std::size_t depth = 0) {
    if (depth > kDeepest) {
      throw corrupt(source_,
                    text("data.pkl: nested deeper than ", kDeepest, " levels, or within itself"));
    }
    budget_.spend(sizeof(Value));
    return std::visit([&](const auto& data) { return copy_data(data, depth); }, node->data);
  }

 private:
  template <class Plain>
  Value copy_data(const Plain& plain, std::size_t) {
    return plain;
  }

  Value copy_data(std::monostate, std::size_t) { return {}; }

  Value copy_data(const std::string& string, std::size_t) {
    budget_.spend(string.size());
    return string;
  }

  Value copy_data(const Tensor& tensor, std::size_t) {
    budget_.spend(2 * sizeof(std::int64_t) * tensor.shape.size());
    return tensor;
  }

  Value copy_data(const Storage&, std::size_t) { throw stray("a bare storage"); }

  Value copy_data(const Global& global, std::size_t) {
    if (global.kind == Global::Kind::dtype) return text("torch.", global.name);
    throw stray(text("the bare name ", global.name));
  }

  Value copy_data(const Items& items, std::size_t depth) {
    if (items.is_dict()) return copy_dict(items, depth);
    std::vector<Value> values;
    for (const Ref item : items.refs) values.push_back(copy(item, depth + 1));
    if (items.kind == Items::Kind::tuple) return Tuple{std::move(values)};
    return List{std::move(values)};
  }

  Value copy_dict(const Items& items, std::size_t depth) {
    Dict dict;
    dict.ordered = items.kind == Items::Kind::ordered_dict;
    std::set<std::string> names;
    std::set<std::int64_t> numbers;
    for (std::size_t i = 0; i < items.refs.size(); i += 2) {
      Value key = copy(items.refs[i], depth + 1);
      const auto* name = key.get_if<std::string>();
      const auto* number = key.get_if<std::int64_t>();
      if (name != nullptr && !names.insert(*name).second) throw twice("\"" + *name + "\"");
      if (number != nullptr && !numbers.insert(*number).second) throw twice(text(*number));
      dict.set(std::move(key), copy(items.refs[i + 1], depth + 1));
    }
    return dict;
  }

  [[nodiscard]] Error twice(const std::string& key) const {
    return corrupt(source_, text("data.pkl: a dict holds the key ", key, " twice"));
  }

  [[nodiscard]] Error stray(const std::string& what) const {
    return unsupported(source_, text("data.pkl holds ", what, ", which is not plain data"));
  }

  const Source& source_;
  Budget& budget_;
};

}  // namespace

Value read_pickle(const Source& source, std::span<const std::byte> pickle,
                  const std::function<std::span<const std::byte>(std::string_view key)>& record) {
  Budget budget(source, pickle.size());
  Machine machine(source, pickle, record, budget);
  return Tree(source, budget).copy(machine.run());
}

}  // namespace yoke::archive
