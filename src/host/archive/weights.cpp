#include "yoke/archive/weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "yoke/archive/pytorch.hpp"
#include "yoke/archive/safetensors.hpp"
#include "yoke/archive/sealed_folder.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr std::array<const char*, 4> kNested{"state_dict", "model_state_dict", "model", "module"};

bool is_state_dict(const Value& value) {
  const Dict* dict = value.get_if<Dict>();
  return dict != nullptr && !dict->entries.empty() &&
         std::all_of(dict->entries.begin(), dict->entries.end(), [](const Dict::Entry& entry) {
           return entry.value.get_if<Tensor>() != nullptr;
         });
}

std::string keys_of(const Dict& dict, std::string_view but) {
  std::vector<std::string> keys;
  for (const Dict::Entry& entry : dict.entries) {
    const auto* key = entry.key.get_if<std::string>();
    if (key != nullptr && *key != but) keys.push_back(*key);
  }
  return core::joined(keys);
}

Weights from_pytorch(const fs::path& path) {
  const Value value = read_pytorch(path);
  if (is_state_dict(value))
    return {.tensors = named_tensors(value), .format = "state_dict of PyTorch"};
  if (const Dict* dict = value.get_if<Dict>()) {
    for (const char* key : kNested) {
      const Value* nested = dict->find(key);
      if (nested == nullptr || !is_state_dict(*nested)) continue;
      const bool lightning = dict->find("pytorch-lightning_version") != nullptr;
      Weights weights{.tensors = named_tensors(*nested),
                      .format = lightning ? "checkpoint of Lightning" : "checkpoint of PyTorch"};
      weights.notes.push_back(text("taken: ", key, "; left: ", keys_of(*dict, key)));
      return weights;
    }
  }
  throw Error(Code::unsupported,
              text(path.string(), ": holds a ", value.kind(), " in which there is no state_dict"),
              "save model.state_dict(), or a dict that holds it under \"state_dict\"");
}

Weights from_folder(const fs::path& folder) {
  std::error_code error;
  if (is_sealed(folder)) {
    verify(folder);
    return {.tensors = read_safetensors(folder / "model.safetensors").tensors,
            .format = "checkpoint of Yoke"};
  }
  if (fs::exists(folder / "model.safetensors", error)) {
    return {.tensors = read_safetensors(folder / "model.safetensors").tensors,
            .format = "safetensors"};
  }
  const SealedFolders found = sealed_folders(folder / "checkpoints", kCheckpointPrefix);
  if (!found.good.empty()) {
    Weights weights = from_folder(found.good.front());
    weights.notes.push_back(text("taken: ", found.good.front().string()));
    return weights;
  }
  throw Error(Code::invalid_argument, text(folder.string(), ": no weights in this folder"),
              "give a file, a checkpoint step-N, or a run folder");
}

void erase_all(std::string& name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at))
    name.erase(at, part.size());
}

bool every_name_begins_with(const std::vector<NamedTensor>& tensors, std::string_view prefix) {
  return !tensors.empty() &&
         std::all_of(tensors.begin(), tensors.end(), [&](const NamedTensor& tensor) {
           return tensor.name.size() > prefix.size() && tensor.name.starts_with(prefix);
         });
}

void require_unique(const std::vector<NamedTensor>& tensors) {
  std::set<std::string> names;
  for (const NamedTensor& tensor : tensors) {
    if (names.insert(tensor.name).second) continue;
    throw Error(Code::invalid_argument,
                text("without its prefix, two tensors are called ", tensor.name));
  }
}

// IEEE 754 half precision: 1 sign, 5 exponent (bias 15), 10 fraction bits.
double from_half(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Rounds to the nearest, ties to even.
std::uint16_t to_half(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::abs(value);
  if (std::isnan(value)) return 0x7E00;
  if (size >= 65520.0) return sign | 0x7C00;  // half way from the largest to the next
  if (size < 0x1p-14) return static_cast<std::uint16_t>(sign | std::lrint(size * 0x1p24));
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // 0.5 to 1
  // A fraction that rounds up to 2048 carries into the exponent, which is what it should do.
  return static_cast<std::uint16_t>(sign + ((exponent + 13) << 10) +
                                    std::lrint(std::ldexp(fraction, 11)));
}

double from_brain(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_brain(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double number(Dtype dtype, std::span<const std::byte> bytes, std::size_t index) {
  switch (dtype) {
    case Dtype::float64: return element<double>(bytes, index);
    case Dtype::float32: return element<float>(bytes, index);
    case Dtype::float16: return from_half(element<std::uint16_t>(bytes, index));
    case Dtype::bfloat16: return from_brain(element<std::uint16_t>(bytes, index));
    default: return 0;
  }
}

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

void put_number(Dtype dtype, std::vector<std::byte>& bytes, std::size_t index, double value) {
  switch (dtype) {
    case Dtype::float64: return put(bytes, index, value);
    case Dtype::float32: return put(bytes, index, static_cast<float>(value));
    case Dtype::float16: return put(bytes, index, to_half(value));
    case Dtype::bfloat16: return put(bytes, index, to_brain(value));
    default: return;
  }
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::float64 || dtype == Dtype::float32 || dtype == Dtype::float16 ||
         dtype == Dtype::bfloat16;
}

const Tensor& like(const Weights& state, const NamedTensor& first) {
  const auto found =
      std::find_if(state.tensors.begin(), state.tensors.end(),
                   [&](const NamedTensor& tensor) { return tensor.name == first.name; });
  if (found == state.tensors.end())
    throw Error(Code::invalid_argument, text("average: one state has no tensor ", first.name));
  if (found->tensor.shape != first.tensor.shape ||
      is_floating(found->tensor.dtype) != is_floating(first.tensor.dtype)) {
    throw Error(Code::invalid_argument,
                text("average: ", first.name, " is ", describe(first.tensor), " in one state and ",
                     describe(found->tensor), " in another"));
  }
  return found->tensor;
}

Tensor owned(const Tensor& form, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return contiguous_tensor(form.dtype, form.shape, *owner, owner);
}

Tensor mean_of(const NamedTensor& first, std::span<const Weights> states) {
  const auto count = static_cast<std::size_t>(numel(first.tensor));
  std::vector<double> sums(count, -0.0);  // which keeps the sign of a zero that is added
  for (const Weights& state : states) {
    const Tensor& tensor = like(state, first);
    const std::vector<std::byte> bytes = row_major_bytes(tensor);
    for (std::size_t i = 0; i < count; ++i) sums[i] += number(tensor.dtype, bytes, i);
  }
  std::vector<std::byte> bytes(nbytes(first.tensor));
  for (std::size_t i = 0; i < count; ++i)
    put_number(first.tensor.dtype, bytes, i, sums[i] / static_cast<double>(states.size()));
  return owned(first.tensor, std::move(bytes));
}

}  // namespace

Weights read_weights(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return from_folder(path);
  if (path.extension() == ".safetensors")
    return {.tensors = read_safetensors(path).tensors, .format = "safetensors"};
  return from_pytorch(path);
}

std::vector<std::string> strip_prefixes(std::vector<NamedTensor>& tensors) {
  std::vector<std::string> taken;
  const auto compiled = [](const NamedTensor& tensor) {
    return tensor.name.find("_orig_mod.") != std::string::npos;
  };
  for (bool again = true; again;) {
    again = false;
    if (std::any_of(tensors.begin(), tensors.end(), compiled)) {
      for (NamedTensor& tensor : tensors) erase_all(tensor.name, "_orig_mod.");
      taken.emplace_back("_orig_mod.");
    }
    for (const std::string_view prefix : {"module.", "model."}) {
      if (!every_name_begins_with(tensors, prefix)) continue;
      for (NamedTensor& tensor : tensors) tensor.name.erase(0, prefix.size());
      taken.emplace_back(prefix);
      again = true;
    }
  }
  require_unique(tensors);
  return taken;
}

std::vector<NamedTensor> average(std::span<const Weights> states) {
  std::vector<NamedTensor> out;
  if (states.empty()) return out;
  for (const Weights& state : states) {
    if (state.tensors.size() == states.front().tensors.size()) continue;
    throw Error(Code::invalid_argument,
                text("average: one state has ", states.front().tensors.size(),
                     " tensors and another ", state.tensors.size()));
  }
  for (const NamedTensor& first : states.front().tensors) {
    const bool has_mean = is_floating(first.tensor.dtype);
    out.push_back({first.name, has_mean ? mean_of(first, states) : like(states.back(), first)});
  }
  return out;
}

}  // namespace yoke::archive
