#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace yoke::parallel {

/// A type of the user's joins in by a free function in its own namespace, found by
/// argument-dependent lookup:
///
///   template <class Visit> void for_each_tensor(Boxes& boxes, Visit&& visit) {
///   visit(boxes.corners); visit(boxes.scores); }
template <class T, class Visit>
concept HasForEachTensor = requires(T& value, Visit&& visit) { for_each_tensor(value, visit); };

namespace detail {

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};

template <class T>
concept IsMap = requires {
  typename T::mapped_type;
  typename T::key_type;
};

template <class T>
concept IsSequence = !std::is_same_v<T, std::string> && requires(T& value) {
  value.begin();
  value.end();
} && !IsMap<T>;

// Stands for a field of any type while the fields of an aggregate are counted.
struct AnyField {
  template <class T>
  operator T() const;
};

template <class T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField{})...}; };
}

/// How many fields an aggregate has, up to 8; 0 for other types.
template <class T, std::size_t N = 8>
constexpr std::size_t field_count() {
  if constexpr (!std::is_aggregate_v<T> || N == 0) {
    return 0;
  } else if constexpr (takes_fields<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return field_count<T, N - 1>();
  }
}

/// Calls `use` with references to all fields of an aggregate.
template <class T, class Use>
void with_fields(T& value, Use&& use) {
  constexpr std::size_t kFields = field_count<std::remove_const_t<T>>();
  if constexpr (kFields == 1) {
    auto& [a] = value;
    use(a);
  } else if constexpr (kFields == 2) {
    auto& [a, b] = value;
    use(a, b);
  } else if constexpr (kFields == 3) {
    auto& [a, b, c] = value;
    use(a, b, c);
  } else if constexpr (kFields == 4) {
    auto& [a, b, c, d] = value;
    use(a, b, c, d);
  } else if constexpr (kFields == 5) {
    auto& [a, b, c, d, e] = value;
    use(a, b, c, d, e);
  } else if constexpr (kFields == 6) {
    auto& [a, b, c, d, e, f] = value;
    use(a, b, c, d, e, f);
  } else if constexpr (kFields == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    use(a, b, c, d, e, f, g);
  } else if constexpr (kFields == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    use(a, b, c, d, e, f, g, h);
  }
}

}  // namespace detail

/// Calls `visit(at::Tensor&)` for each tensor in `value`, in order: tensors, optionals, pairs,
/// tuples, arrays, vectors, maps, c10::IValue, aggregates of up to 8 fields, each nested in each,
/// and types with for_each_tensor(). Other types hold no tensors and are passed over.
template <class T, class Visit>
void visit_tensors(T& value, Visit&& visit) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, at::Tensor>) {
    visit(value);
  } else if constexpr (HasForEachTensor<T, Visit>) {
    for_each_tensor(value, visit);
  } else if constexpr (std::is_same_v<Plain, c10::IValue>) {
    if constexpr (std::is_const_v<T>) {
      if (value.isTensor()) visit(value.toTensor());
    } else if (value.isTensor()) {
      at::Tensor tensor = value.toTensor();
      visit(tensor);
      value = tensor;
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> list = value.toTensorVector();
      for (at::Tensor& tensor : list) visit(tensor);
      value = list;
    } else if (value.isTuple()) {
      std::vector<c10::IValue> elements(value.toTupleRef().elements().begin(),
                                        value.toTupleRef().elements().end());
      for (c10::IValue& element : elements) visit_tensors(element, visit);
      value = c10::ivalue::Tuple::create(std::move(elements));
    } else if (value.isGenericDict()) {
      auto dict = value.toGenericDict();
      for (const auto& entry : dict) {
        c10::IValue element = entry.value();
        visit_tensors(element, visit);
        dict.insert_or_assign(entry.key(), element);
      }
    }
  } else if constexpr (detail::IsTuple<Plain>::value) {
    std::apply([&](auto&... element) { (visit_tensors(element, visit), ...); }, value);
  } else if constexpr (detail::IsMap<Plain>) {
    for (auto& [key, element] : value) visit_tensors(element, visit);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) visit_tensors(*value, visit);
  } else if constexpr (detail::IsSequence<Plain>) {
    if constexpr (!std::is_arithmetic_v<std::remove_cvref_t<decltype(*value.begin())>>) {
      for (auto& element : value) visit_tensors(element, visit);
    }
  } else if constexpr (std::is_class_v<Plain> && detail::field_count<Plain>() > 0) {
    detail::with_fields(value, [&](auto&... field) { (visit_tensors(field, visit), ...); });
  }
}

/// Rows of the first tensor of at least one dimension among the arguments; 1 where there is none.
template <class... Args>
[[nodiscard]] std::int64_t rows_of(const Args&... args) {
  std::int64_t rows = -1;
  [[maybe_unused]] const auto look = [&rows](const at::Tensor& tensor) {
    if (rows < 0 && tensor.defined() && tensor.dim() > 0) rows = tensor.size(0);
  };
  (visit_tensors(args, look), ...);
  return rows < 0 ? 1 : rows;
}

}  // namespace yoke::parallel
