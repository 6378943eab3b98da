#include "call.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

std::string shape_of(const Call& call) {
  if (call.shape_bytes == 0) return core::text(call.count);
  return {call.shape.data(), call.shape_bytes};
}

std::string elements_of(const Call& call) {
  if (call.operation == Operation::barrier) return {};
  if (call.operation == Operation::allocate) return shape_of(call);
  return core::text(shape_of(call), ' ', name(call.dtype));
}

std::string root_of(const Call& call) {
  return call.root < 0 ? std::string{} : core::text(" from rank ", call.root);
}

template <class T>
std::optional<std::string> differ(const char* aspect, const T& one, const T& other) {
  return core::text(aspect, " differ (", one, " vs ", other, ")");
}

}  // namespace

Call call_of(Operation operation, const Elements& elements) {
  Call call;
  call.operation = operation;
  call.dtype = elements.dtype;
  call.count = elements.count;
  call.part = elements.count;
  call.shape_hash = std::hash<std::string_view>{}(elements.shape);
  call.shape_bytes = static_cast<std::uint32_t>(std::min(elements.shape.size(), kShapeBytes));
  std::copy_n(elements.shape.begin(), call.shape_bytes, call.shape.begin());
  return call;
}

std::string_view name(Operation operation) noexcept {
  constexpr std::array<std::string_view, 7> kNames{"all-reduce",     "broadcast",  "all-gather",
                                                   "reduce-scatter", "all-to-all", "barrier",
                                                   "allocate"};
  return kNames[static_cast<std::size_t>(operation)];
}

std::string text_of(const Call& call) {
  const std::string elements = elements_of(call);
  return core::text(name(call.operation), elements.empty() ? "" : " ", elements, root_of(call));
}

std::string text_of(const Call& call, std::uint64_t sequence) {
  std::string whole = core::text(name(call.operation), " #", sequence, root_of(call));
  const std::string elements = elements_of(call);
  if (call.operation == Operation::allocate) return core::text(whole, " (", elements, ")");
  if (elements.empty()) return whole;
  return core::text(whole, " (", elements, ", ", core::bytes_text(call.count * size_of(call.dtype)),
                    ")");
}

std::optional<std::string> difference(const Call& one, const Call& other) {
  if (one.operation != other.operation) {
    return differ("operations", name(one.operation), name(other.operation));
  }
  if (one.dtype != other.dtype) return differ("dtypes", name(one.dtype), name(other.dtype));
  if (one.shape_hash != other.shape_hash) {
    return differ("shapes", shape_of(one), shape_of(other));
  }
  if (one.count != other.count) return differ("numbers of elements", one.count, other.count);
  if (one.reduction != other.reduction) {
    return differ("reductions", name(one.reduction), name(other.reduction));
  }
  if (one.root != other.root) return differ("roots", one.root, other.root);
  if (one.region != other.region) return differ("buffers", one.region, other.region);
  if (one.offset != other.offset) return differ("byte offsets", one.offset, other.offset);
  if (one.part != other.part) return differ("sizes of parts", one.part, other.part);
  return std::nullopt;
}

}  // namespace yoke::shm
