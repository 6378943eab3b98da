#include "yoke/archive/pytorch.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "mapped_file.hpp"
#include "pickle_reader.hpp"
#include "pickle_writer.hpp"
#include "source.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "zip_reader.hpp"
#include "zip_writer.hpp"

namespace yoke::archive {
namespace {

using core::text;
using Bytes = std::span<const std::byte>;

/// How the pickle of torch.save's format before PyTorch 1.6 begins: its magic number as a LONG1.
constexpr std::array<unsigned char, 14> kLegacyStart{0x80, 0x02, 0x8A, 0x0A, 0x6C, 0xFC, 0x9C,
                                                     0x46, 0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19};

bool starts_like_legacy(Bytes bytes) {
  return bytes.size() >= kLegacyStart.size() &&
         std::equal(kLegacyStart.begin(), kLegacyStart.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The folder in which all records lie.
std::string folder_of(const Source& source, const ZipReader& zip) {
  const std::string folder = zip.first_name().substr(0, zip.first_name().find('/'));
  if (zip.has(folder + "/constants.pkl")) {
    throw unsupported(
        source, "a TorchScript file, not a checkpoint",
        "open it with torch::jit::load, or save its state_dict with torch.save in Python");
  }
  if (!zip.has(folder + "/data.pkl"))
    throw corrupt(source, text("no record data.pkl in folder ", folder));
  return folder;
}

void check_byte_order(const Source& source, const ZipReader& zip, const std::string& name) {
  if (!zip.has(name)) return;  // PyTorch before 2.1 writes none
  const std::string_view order = as_text(zip.record(name));
  if (order != "little") {
    throw unsupported(
        source, text("byte order \"", order.substr(0, 20), "\", of which only \"little\" is read"),
        "save it again on a little-endian machine");
  }
}

Value read(const Source& source) {
  if (starts_like_legacy(source.bytes)) {
    throw unsupported(source, "torch.save's format before PyTorch 1.6",
                      "load it in Python and torch.save it again");
  }
  const ZipReader zip(source);
  const std::string folder = folder_of(source, zip);
  check_byte_order(source, zip, folder + "/byteorder");
  return read_pickle(source, zip.record(folder + "/data.pkl"),
                     [&](std::string_view key) { return zip.record(text(folder, "/data/", key)); });
}

/// The records in the order in which PyTorch 2.11 writes them.
void write_records(ZipWriter& zip, std::string_view pickle, const std::vector<Tensor>& storages) {
  zip.add("data.pkl", pickle);
  zip.add(".format_version", "1");
  zip.add(".storage_alignment", "64");
  zip.add("byteorder", "little");
  for (std::size_t i = 0; i < storages.size(); ++i) {
    zip.begin(text("data/", i), nbytes(storages[i]));
    visit_row_major(storages[i], [&](Bytes piece) { zip.append(piece); });
    zip.end();
  }
  zip.add("version", "3\n");
  zip.add(".data/serialization_id", zip.digest());
  zip.finish();
}

}  // namespace

void write_pytorch(const std::filesystem::path& path, const Value& value) {
  PickleWriter writer;
  writer.write(value);
  const std::string pickle = writer.finish();
  std::uint64_t needed = pickle.size();
  for (const Tensor& storage : writer.storages()) needed += nbytes(storage);

  try {
    core::AtomicFile file(path);
    ZipWriter zip(file, "archive");
    write_records(zip, pickle, writer.storages());
    file.commit();
  } catch (const Error& error) {
    throw error.within(text("save ", path.string(), ", ", core::bytes_text(needed)));
  }
}

Value read_pytorch(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return read({.bytes = file->bytes(), .owner = file, .name = path.string()});
}

Value read_pytorch(std::span<const std::byte> bytes, std::string_view name) {
  return read({.bytes = bytes, .name = std::string(name)});
}

}  // namespace yoke::archive
