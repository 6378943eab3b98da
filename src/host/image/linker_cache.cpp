#include "yoke/image/linker_cache.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

constexpr std::string_view kOldMagic("ld.so-1.7.0\0", 12);
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kHeader = 48;
constexpr std::size_t kEntry = 24;
constexpr std::size_t kOldEntry = 12;
constexpr std::size_t kOldHeader = 16;
constexpr std::uint8_t kLittleEndian = 2;

template <class Number>
Number number_at(std::string_view bytes, std::size_t at, std::string_view what) {
  if (at > bytes.size() || bytes.size() - at < sizeof(Number)) {
    throw Error(Code::corrupt_data, core::text("read ", what, ": cut short at byte ", at));
  }
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof(Number));
  return number;
}

template <class Number>
void put(std::string& out, Number number) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &number, sizeof(Number));
  out.append(bytes, sizeof(Number));
}

std::string text_at(std::string_view bytes, std::size_t at, std::string_view what) {
  const std::size_t end = at < bytes.size() ? bytes.find('\0', at) : std::string_view::npos;
  if (end == std::string_view::npos) {
    throw Error(Code::corrupt_data, core::text("read ", what, ": a name leads out of the file"));
  }
  return std::string(bytes.substr(at, end - at));
}

/// The new format's table; the old one, where it stands before, is skipped.
std::string_view new_table(std::string_view bytes, std::string_view what) {
  if (bytes.starts_with(kOldMagic)) {
    const auto count = number_at<std::uint32_t>(bytes, 12, what);
    const std::size_t end = (kOldHeader + std::size_t{count} * kOldEntry + 7) / 8 * 8;
    bytes.remove_prefix(std::min(end, bytes.size()));
  }
  if (!bytes.starts_with(kMagic)) {
    throw Error(Code::corrupt_data, core::text("read ", what, ": no cache of glibc's linker"));
  }
  return bytes;
}

bool is_digit(char byte) { return std::isdigit(static_cast<unsigned char>(byte)) != 0; }

std::uint64_t take_number(std::string_view text, std::size_t& at) {
  std::uint64_t number = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    number = number * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  return number;
}

/// glibc's order of names, in which its linker searches: runs of digits compare as numbers.
int compare_names(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < a.size()) {
    if (is_digit(a[i])) {
      if (k >= b.size() || !is_digit(b[k])) return 1;
      const std::uint64_t left = take_number(a, i);
      const std::uint64_t right = take_number(b, k);
      if (left != right) return left < right ? -1 : 1;
    } else if (k < b.size() && is_digit(b[k])) {
      return -1;
    } else if (k >= b.size() || a[i] != b[k]) {
      return a[i] < (k < b.size() ? b[k] : '\0') ? -1 : 1;
    } else {
      ++i;
      ++k;
    }
  }
  return k < b.size() ? -1 : 0;
}

}  // namespace

std::int32_t native_library_flags() noexcept {
#if defined(__aarch64__)
  return 0x0a03;
#else
  return 0x0303;
#endif
}

std::vector<CachedLibrary> read_linker_cache(std::string_view bytes, std::string_view what) {
  const std::string_view table = new_table(bytes, what);
  const auto count = number_at<std::uint32_t>(table, kMagic.size(), what);
  if (count > table.size() / kEntry) {
    throw Error(Code::corrupt_data, core::text("read ", what, ": ", count, " libraries in ",
                                               core::bytes_text(bytes.size())));
  }
  std::vector<CachedLibrary> libraries;
  libraries.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = kHeader + i * kEntry;
    const auto name = number_at<std::uint32_t>(table, at + 4, what);
    const auto path = number_at<std::uint32_t>(table, at + 8, what);
    libraries.push_back({.name = text_at(table, name, what),
                         .path = text_at(table, path, what),
                         .flags = number_at<std::int32_t>(table, at, what),
                         .hwcap = number_at<std::uint64_t>(table, at + 16, what)});
  }
  return libraries;
}

std::string write_linker_cache(std::vector<CachedLibrary> libraries) {
  // Entries of newer glibc may point into an extension that is not carried over.
  std::erase_if(libraries, [](const CachedLibrary& one) { return one.hwcap != 0; });
  std::stable_sort(libraries.begin(), libraries.end(),
                   [](const CachedLibrary& a, const CachedLibrary& b) {
                     const int order = compare_names(a.name, b.name);
                     return order != 0 ? order > 0 : a.flags > b.flags;
                   });
  std::string strings;
  std::string entries;
  const std::size_t begin = kHeader + libraries.size() * kEntry;
  for (const CachedLibrary& library : libraries) {
    put(entries, library.flags);
    put(entries, static_cast<std::uint32_t>(begin + strings.size()));
    strings += library.name + '\0';
    put(entries, static_cast<std::uint32_t>(begin + strings.size()));
    strings += library.path + '\0';
    put(entries, std::uint32_t{0});
    put(entries, std::uint64_t{0});
  }
  std::string out(kMagic);
  put(out, static_cast<std::uint32_t>(libraries.size()));
  put(out, static_cast<std::uint32_t>(strings.size()));
  put(out, kLittleEndian);
  out.resize(kHeader, '\0');
  return out + entries + strings;
}

}  // namespace yoke::image
