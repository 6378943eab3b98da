#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "mapped_file.hpp"
#include "safetensors_format.hpp"
#include "source.hpp"
#include "yoke/archive/safetensors.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

using core::text;
using nlohmann::json;
using safetensors::kLengthBytes;
using safetensors::kMetadata;
using safetensors::kMostHeaderBytes;

std::uint64_t from_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    number = number << 8 | static_cast<std::uint64_t>(bytes[i]);
  return number;
}

/// JSON lets a key stand twice, of which the parser would keep one in silence.
json parse_header(const Source& source, std::string_view header) {
  std::vector<std::set<std::string>> keys;
  const json::parser_callback_t refuse_twice = [&](int, json::parse_event_t event, json& item) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(item.get<std::string>()).second) {
      throw corrupt(source, text("the header holds \"", item.get<std::string>(), "\" twice"));
    }
    return true;
  };
  try {
    json parsed = json::parse(header, refuse_twice);
    if (parsed.is_object()) return parsed;
  } catch (const json::exception& error) {
    throw corrupt(source, "the header is no JSON").caused_by(error);
  }
  throw corrupt(source, "the header is no JSON object");
}

std::int64_t whole_number(const Source& source, const std::string& where, const json& item) {
  if (item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX)
    return item.get<std::int64_t>();
  throw corrupt(source, text(where, ": expected a whole number from 0 to 2^63-1, found ",
                             item.dump().substr(0, 40)));
}

std::vector<std::int64_t> whole_numbers(const Source& source, const std::string& where,
                                        const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array())
    throw corrupt(source, text(where, ": no list \"", key, "\""));
  std::vector<std::int64_t> numbers;
  for (const json& item : *found) numbers.push_back(whole_number(source, where, item));
  return numbers;
}

Dtype dtype_of(const Source& source, const std::string& where, const json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string())
    throw corrupt(source, text(where, ": no text \"dtype\""));
  const auto name = found->get<std::string>();
  if (const auto dtype = dtype_from_safetensors_name(name)) return *dtype;
  throw unsupported(source, text(where, ": dtype ", name.substr(0, 40), " is none that Yoke knows"),
                    "convert the tensor with Python, e.g. to BF16");
}

/// A tensor's place in the buffer behind the header.
struct Placed {
  std::size_t begin = 0;
  std::size_t end = 0;
  NamedTensor named{};
};

/// Nothing on overflow, also in the strides of a tensor without elements.
std::optional<std::int64_t> bytes_of(Dtype dtype, std::span<const std::int64_t> shape) {
  auto bytes = static_cast<std::int64_t>(itemsize(dtype));
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) return std::nullopt;
  }
  return empty ? 0 : bytes;
}

Placed place(const Source& source, const std::string& name, const json& entry,
             std::span<const std::byte> buffer) {
  const std::string where = text("tensor \"", name, "\"");
  if (!entry.is_object()) throw corrupt(source, where + ": no JSON object");
  const Dtype dtype = dtype_of(source, where, entry);
  std::vector<std::int64_t> shape = whole_numbers(source, where, entry, "shape");
  const std::vector<std::int64_t> offsets = whole_numbers(source, where, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    throw corrupt(source, where + ": data_offsets are no range");
  }
  if (std::cmp_greater(offsets[1], buffer.size())) {
    throw corrupt(source, text(where, ": its bytes end at ", offsets[1], " of a buffer of ",
                               buffer.size(), " B"));
  }
  const auto begin = static_cast<std::size_t>(offsets[0]);
  const auto end = static_cast<std::size_t>(offsets[1]);
  if (const auto bytes = bytes_of(dtype, shape); bytes != offsets[1] - offsets[0]) {
    throw corrupt(source,
                  text(where, ": its shape takes ", bytes ? text(*bytes, " B") : "more than 2^63 B",
                       ", its data_offsets ", end - begin, " B"));
  }
  return {begin,
          end,
          {name, contiguous_tensor(dtype, std::move(shape), buffer.subspan(begin, end - begin))}};
}

/// The places must cover the buffer, each byte once.
void check_cover(const Source& source, const std::vector<Placed>& places,
                 std::size_t buffer_bytes) {
  std::size_t covered = 0;
  for (const Placed& placed : places) {
    if (placed.begin != covered) {
      throw corrupt(source,
                    text("tensor \"", placed.named.name, "\": its bytes begin at ", placed.begin,
                         placed.begin < covered ? " inside those" : ", a hole after those",
                         " of the tensor before, which end at ", covered));
    }
    covered = placed.end;
  }
  if (covered != buffer_bytes) {
    throw corrupt(source,
                  text("the tensors end at ", covered, " of a buffer of ", buffer_bytes, " B"));
  }
}

std::map<std::string, std::string> metadata_of(const Source& source, const json& entry) {
  std::map<std::string, std::string> metadata;
  if (!entry.is_object()) throw corrupt(source, "__metadata__ is no JSON object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) throw corrupt(source, text("__metadata__: \"", key, "\" is no text"));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

Safetensors read(const Source& source) {
  if (source.bytes.size() < kLengthBytes)
    throw corrupt(source, "too short for the header's length");
  const std::uint64_t length = from_little_endian(source.bytes);
  const std::size_t rest = source.bytes.size() - kLengthBytes;
  if (length > std::min<std::uint64_t>(rest, kMostHeaderBytes)) {
    throw corrupt(source, text("it says that its header has ", length, " B, of at most ",
                               std::min<std::uint64_t>(rest, kMostHeaderBytes)));
  }
  const auto header_bytes = source.bytes.subspan(kLengthBytes, static_cast<std::size_t>(length));
  const auto buffer = source.bytes.subspan(kLengthBytes + header_bytes.size());
  const json header = parse_header(
      source, {reinterpret_cast<const char*>(header_bytes.data()), header_bytes.size()});

  Safetensors result;
  std::vector<Placed> places;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      result.metadata = metadata_of(source, entry);
    } else {
      places.push_back(place(source, name, entry, buffer));
    }
  }
  std::ranges::sort(places, {},
                    [](const Placed& placed) { return std::pair(placed.begin, placed.end); });
  check_cover(source, places, buffer.size());
  for (Placed& placed : places) {
    Tensor& tensor = placed.named.tensor;
    const Kept kept = keep(source, tensor.storage, itemsize(tensor.dtype));
    tensor.storage = kept.bytes;
    tensor.owner = kept.owner;
    result.tensors.push_back(std::move(placed.named));
  }
  return result;
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return read({.bytes = file->bytes(), .owner = file, .name = path.string()});
}

Safetensors read_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return read({.bytes = bytes, .name = std::string(name)});
}

}  // namespace yoke::archive
