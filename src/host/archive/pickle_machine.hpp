#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "pickle_format.hpp"
#include "pickle_nodes.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive::pickle {

/// Runs the opcodes of a pickle. Owns the nodes that run() returns and those they refer to.
class Machine {
 public:
  using Record = std::function<std::span<const std::byte>(std::string_view key)>;

  /// Borrows all it is given.
  Machine(const Source& source, std::span<const std::byte> pickle, const Record& record,
          Budget& budget)
      : source_(source), pickle_(pickle), record_(record), budget_(budget) {}

  Ref run();

 private:
  [[nodiscard]] Error broken(const std::string& what) const;
  [[nodiscard]] Error refused(const std::string& what, std::string hint = {}) const;

  // The bytes of the pickle.
  std::span<const std::byte> take(std::size_t count);
  std::string_view take_text(std::size_t count);
  std::string_view take_line();
  std::uint64_t take_number(std::size_t bytes);

  // The stack. What lies below the last mark is out of reach.
  template <class Data>
  void push(Data&& data) {
    stack_.push_back(&nodes_.emplace_back(Node{std::forward<Data>(data)}));
  }
  [[nodiscard]] Ref top() const;
  Ref pop();
  std::vector<Ref> pop_some(std::size_t count);
  std::vector<Ref> pop_to_mark();
  void add_to_list(const std::vector<Ref>& items);
  void add_to_dict(const std::vector<Ref>& items);
  Items* top_items();

  // The opcodes.
  void step(Op op);
  bool step_container(Op op);
  void check_protocol(int protocol) const;
  void push_long();
  void push_float();
  void push_global();
  void push_storage();
  void remember(std::uint64_t slot);
  void recall(std::uint64_t slot);
  void build();

  // Calls of known names.
  template <class T>
  const T& expect(Ref node, const char* what) const {
    if (const T* data = std::get_if<T>(&node->data)) return *data;
    throw broken(core::text(what, " is a ", node->kind()));
  }
  [[nodiscard]] const std::vector<Ref>& arguments(Ref node, std::size_t at_least) const;
  [[nodiscard]] std::vector<Ref> sequence(Ref node) const;
  [[nodiscard]] std::vector<std::int64_t> integers(Ref node) const;
  void call();
  void call_dict(Items::Kind kind, const std::vector<Ref>& args);
  void call_device(const std::vector<Ref>& args);
  void rebuild_tensor(const std::vector<Ref>& args, std::optional<Dtype> dtype);
  void rebuild_parameter(const std::vector<Ref>& args);
  [[nodiscard]] Dtype known_dtype(Ref node) const;
  const Kept& storage(std::string_view key);

  const Source& source_;
  std::span<const std::byte> pickle_;
  const Record& record_;
  Budget& budget_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  std::deque<Node> nodes_;  // a deque, so that their addresses stay
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Ref> memo_;
  std::map<std::string, Kept, std::less<>> storages_;
};

}  // namespace yoke::archive::pickle
