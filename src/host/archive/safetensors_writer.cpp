#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "safetensors_format.hpp"
#include "source.hpp"
#include "yoke/archive/safetensors.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

using core::text;
using nlohmann::json;
using safetensors::kLengthBytes;
using safetensors::kMetadata;

void check_names(std::span<const NamedTensor> tensors) {
  std::set<std::string_view> seen;
  for (const auto& [name, tensor] : tensors) {
    const std::string doing = text("write safetensors: tensor \"", name, "\"");
    if (!is_utf8(name)) throw Error(Code::invalid_argument, doing + ": the name is not UTF-8");
    if (name == kMetadata)
      throw Error(Code::invalid_argument, doing + ": the format keeps this name for itself");
    if (!seen.insert(name).second)
      throw Error(Code::invalid_argument, doing + ": two tensors have this name");
    if (const auto problem = defect(tensor))
      throw Error(Code::invalid_argument, doing + ": " + *problem);
  }
}

/// By falling element size: every tensor then lies at a multiple of its element's size, which
/// readers that map need.
std::vector<const NamedTensor*> layout(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) order.push_back(&named);
  std::ranges::stable_sort(order, std::greater{},
                           [](const NamedTensor* named) { return itemsize(named->tensor.dtype); });
  return order;
}

std::string header_text(const std::vector<const NamedTensor*>& order,
                        const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  if (!metadata.empty()) header += text(json(kMetadata).dump(), ":", json(metadata).dump(), ",");
  std::uint64_t begin = 0;
  for (const NamedTensor* named : order) {
    const std::uint64_t end = begin + nbytes(named->tensor);
    header +=
        text(json(named->name).dump(), R"(:{"dtype":")", safetensors_name(named->tensor.dtype),
             R"(","shape":)", json(named->tensor.shape).dump(), R"(,"data_offsets":[)", begin, ",",
             end, "]},");
    begin = end;
  }
  if (header.back() == ',') header.pop_back();
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

std::array<char, kLengthBytes> little_endian(std::uint64_t number) {
  std::array<char, kLengthBytes> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xFF);
    number >>= 8;
  }
  return bytes;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_names(tensors);
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      throw Error(Code::invalid_argument, "write safetensors: metadata is not UTF-8");
    }
  }
  const std::vector<const NamedTensor*> order = layout(tensors);
  const std::string header = header_text(order, metadata);
  std::uint64_t needed = kLengthBytes + header.size();
  for (const NamedTensor* named : order) needed += nbytes(named->tensor);

  try {
    core::AtomicFile file(path);
    const auto length = little_endian(header.size());
    file.write(length.data(), length.size());
    file.write(header);
    for (const NamedTensor* named : order) {
      visit_row_major(named->tensor, [&](std::span<const std::byte> piece) {
        file.write(piece.data(), piece.size());
      });
    }
    file.commit();
  } catch (const Error& error) {
    throw error.within(text("save ", path.string(), ", ", core::bytes_text(needed)));
  }
}

}  // namespace yoke::archive
