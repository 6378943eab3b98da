#include "yoke/checkpoint/files.hpp"

#include "yoke/archive/pytorch.hpp"
#include "yoke/archive/safetensors.hpp"
#include "yoke/checkpoint/convert.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::checkpoint {
namespace {

using archive::NamedTensor;
using core::text;

enum class Format { pytorch, safetensors };

Format format_of(const std::filesystem::path& path) {
  const std::string end = path.extension().string();
  if (end == ".pt" || end == ".pth") return Format::pytorch;
  if (end == ".safetensors") return Format::safetensors;
  throw Error(Code::invalid_argument,
              text("state_dict file ", path.string(), ": its name tells no format"),
              "name it .pt, .pth or .safetensors");
}

/// The dict with the tensors: the value itself, or one of the places where training scripts keep
/// it.
const archive::Value& find_state_dict(const archive::Value& value) {
  const auto* dict = value.get_if<archive::Dict>();
  if (dict == nullptr) return value;
  for (const char* key : {"state_dict", "model_state_dict", "model"}) {
    const archive::Value* inner = dict->find(key);
    if (inner != nullptr && inner->get_if<archive::Dict>() != nullptr) return *inner;
  }
  return value;
}

std::vector<NamedTensor> read(const std::filesystem::path& path) {
  if (format_of(path) == Format::safetensors) return archive::read_safetensors(path).tensors;
  const archive::Value value = archive::read_pytorch(path);
  try {
    return archive::named_tensors(find_state_dict(value));
  } catch (const Error& error) {
    throw error.within(text("load ", path.string()));
  }
}

}  // namespace

void save_state_dict(const std::filesystem::path& path, const StateDict& state) {
  const Format format = format_of(path);
  ToArchive to_archive;
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state) {
    try {
      tensors.push_back({name, to_archive(tensor)});
    } catch (const Error& error) {
      throw error.within(text("save ", path.string(), ": \"", name, "\""));
    }
    tensors.back().tensor.requires_grad = false;  // as in Python, whose state_dict is detached
  }
  if (format == Format::pytorch) {
    archive::write_pytorch(path, archive::state_dict(tensors));
  } else {
    archive::write_safetensors(path, tensors, {{"format", "pt"}});
  }
}

StateDict load_state_dict(const std::filesystem::path& path) {
  FromArchive from_archive;
  StateDict state;
  for (const NamedTensor& named : read(path))
    state.emplace_back(named.name, from_archive(named.tensor));
  return state;
}

void save_value(const std::filesystem::path& path, const archive::Value& value) {
  archive::write_pytorch(path, value);
}

archive::Value load_value(const std::filesystem::path& path) { return archive::read_pytorch(path); }

}  // namespace yoke::checkpoint
