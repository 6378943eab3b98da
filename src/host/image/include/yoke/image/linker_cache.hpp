#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::image {

/// A line of ld.so.cache: where the dynamic linker finds a SONAME.
struct CachedLibrary {
  std::string name{};  ///< libcuda.so.1
  std::string path{};
  std::int32_t flags = 0;  ///< kind of library; 0x0303: x86-64, 0x0a03: aarch64
  std::uint64_t hwcap = 0;
};

/// The flags of this machine's 64-bit libraries.
[[nodiscard]] std::int32_t native_library_flags() noexcept;

/// Reads ld.so.cache of glibc 2.2 and later (also behind the old format's table).
/// Errors: corrupt_data with `what` for another file or a damaged one.
[[nodiscard]] std::vector<CachedLibrary> read_linker_cache(std::string_view bytes,
                                                           std::string_view what);

/// The file for these libraries, as ldconfig would write it: it can be bound in, so that nothing
/// has to run in the container. Of equal names the first given is found first.
[[nodiscard]] std::string write_linker_cache(std::vector<CachedLibrary> libraries);

}  // namespace yoke::image
