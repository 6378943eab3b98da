#include "unpacked_cache.hpp"

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTrailerBytes =
    8;  // gzip's end: check sum and unpacked size modulo 2^32, low bytes first

std::uint32_t little_endian_32(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

// FNV-1a of 64 bits: names a file, guards nothing.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xCBF29CE484222325U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return value;
}

std::string entry_name(const fs::path& path, std::span<const std::byte> trailer) {
  struct stat info{};
  ::stat(path.c_str(), &info);
  const std::uint64_t key = hash(core::text(fs::absolute(path).lexically_normal().string(), '\n',
                                            info.st_size, '\n', info.st_mtim.tv_sec, '.',
                                            info.st_mtim.tv_nsec, '\n', little_endian_32(trailer)));
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(key));
  return core::text(path.stem().string(), '-', hex.data());
}

std::optional<Bytes> mapped_entry(const fs::path& entry, std::uint32_t size_modulo) {
  std::error_code none;
  if (!fs::is_regular_file(entry, none)) return std::nullopt;
  Bytes bytes = Bytes::map(entry);
  if (static_cast<std::uint32_t>(bytes.view().size()) != size_modulo) return std::nullopt;
  return bytes;
}

void warn_once(const std::exception& reason) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  core::say(core::Level::warning,
            core::text("unpacked data is kept in memory, once per process: ", reason.what()));
}

}  // namespace

Bytes unpacked_through_cache(const fs::path& path, std::span<const std::byte> packed,
                             const Unpack& unpack) {
  if (packed.size() < kTrailerBytes) return Bytes(unpack(packed, path));
  const auto trailer = packed.last(kTrailerBytes);
  const std::uint32_t size_modulo = little_endian_32(trailer.subspan(4));
  std::vector<std::byte> whole;
  try {
    const fs::path folder = core::cache_folder() / "unpacked";
    const fs::path entry = folder / entry_name(path, trailer);
    if (auto bytes = mapped_entry(entry, size_modulo)) return std::move(*bytes);
    whole = unpack(packed, path);
    fs::create_directories(folder);
    core::write_atomically(entry, {reinterpret_cast<const char*>(whole.data()), whole.size()});
    return Bytes::map(entry);
  } catch (const Error& error) {
    if (error.code() != Code::io) throw;
    warn_once(error);
  } catch (const fs::filesystem_error& error) {
    warn_once(error);
  }
  return Bytes(whole.empty() ? unpack(packed, path) : std::move(whole));
}

}  // namespace yoke::feed
