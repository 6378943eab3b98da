#include "index_cache.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <system_error>

#include "fingerprint.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

std::uint64_t sum_of(std::string_view bytes) {
  Fingerprint print;
  print.add(bytes);
  return print.value();
}

fs::path entry_of(const fs::path& of, std::string_view variant) {
  const fs::path whole = (fs::absolute(of) / "").lexically_normal().parent_path();
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx",
                static_cast<unsigned long long>(sum_of(core::text(whole.string(), '\n', variant))));
  return core::cache_folder() / "index" / core::text(whole.stem().string(), '-', hex.data());
}

}  // namespace

std::optional<std::string> load_index(const fs::path& of, std::string_view variant) {
  try {
    const fs::path entry = entry_of(of, variant);
    std::error_code none;
    if (fs::is_regular_file(entry, none)) return core::read_file(entry);
  } catch (const Error&) {                 // NOLINT(bugprone-empty-catch): it is made anew
  } catch (const fs::filesystem_error&) {  // NOLINT(bugprone-empty-catch)
  }
  return std::nullopt;
}

void keep_index(const fs::path& of, std::string_view variant, std::string_view bytes) {
  try {
    const fs::path entry = entry_of(of, variant);
    fs::create_directories(entry.parent_path());
    core::write_atomically(entry, bytes);
  } catch (const Error&) {                 // NOLINT(bugprone-empty-catch): it costs time, no more
  } catch (const fs::filesystem_error&) {  // NOLINT(bugprone-empty-catch)
  }
}

std::string IndexWriter::finish() {
  put(sum_of(bytes_));
  return std::move(bytes_);
}

IndexReader::IndexReader(std::string_view bytes) {
  std::uint64_t sum = 0;
  if (bytes.size() < sizeof(sum)) {
    failed_ = true;
    return;
  }
  const std::string_view values = bytes.substr(0, bytes.size() - sizeof(sum));
  std::memcpy(&sum, bytes.data() + values.size(), sizeof(sum));
  failed_ = sum != sum_of(values);
  if (!failed_) left_ = values;
}

}  // namespace yoke::feed
