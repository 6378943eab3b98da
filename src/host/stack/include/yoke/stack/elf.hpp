#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::stack {

/// A version that a library needs of another (GLIBCXX_3.4.30 of libstdc++.so.6).
struct NeededVersion {
  std::string library{};
  std::string version{};
};

struct ElfNote {
  std::string section{};
  std::string owner{};
  std::uint32_t type = 0;
  std::span<const std::byte> bytes{};
};

/// A shared library or program, read from its bytes without being loaded.
///
///   const ElfFile file = ElfFile::open("libtorch_cuda.so");
///   for (const std::string& name : file.needed()) ...
///
/// Every offset and count in the file is checked, so that no bytes can lead out of it.
/// Owns: the mapping of an opened file. parse() borrows its bytes. What is returned as a span or
///   string_view lives as long as they do.
/// Errors: not_found, io; corrupt_data for what is no ELF file or is damaged, unsupported for one
/// of
///   32 bits or other byte order, all with the name.
/// Threads: any, for reading. Cost: only the pages that are looked at are read.
class ElfFile {
 public:
  [[nodiscard]] static ElfFile open(const std::filesystem::path& path);
  [[nodiscard]] static ElfFile parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint16_t machine() const noexcept { return machine_; }     ///< 62: x86-64
  [[nodiscard]] const std::string& soname() const noexcept { return soname_; }  ///< empty: none
  [[nodiscard]] const std::vector<std::string>& needed() const noexcept { return needed_; }
  [[nodiscard]] const std::vector<std::string>& rpath() const noexcept { return rpath_; }
  [[nodiscard]] const std::vector<std::string>& runpath() const noexcept { return runpath_; }

  /// The bytes of a section; nothing where there is none of that name.
  [[nodiscard]] std::optional<std::span<const std::byte>> section(std::string_view name) const;

  /// Calls `visit` for each dynamic symbol until it returns false.
  void symbols(const std::function<bool(std::string_view name, bool defined)>& visit) const;

  [[nodiscard]] std::vector<NeededVersion> needed_versions() const;
  [[nodiscard]] std::vector<std::string> defined_versions() const;
  [[nodiscard]] std::vector<ElfNote> notes() const;

 private:
  struct Section {
    std::string_view name{};
    std::uint32_t type = 0;
    std::uint32_t link = 0;
    std::span<const std::byte> bytes{};
  };

  ElfFile(std::shared_ptr<const void> owner, std::span<const std::byte> bytes, std::string name);
  void read_sections();
  void read_dynamic();
  [[nodiscard]] const Section* find(std::uint32_t type) const;
  [[nodiscard]] std::string_view text_of(const Section& table, std::uint64_t offset) const;
  [[nodiscard]] const Section& linked(const Section& section) const;
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t offset, std::uint64_t count) const;
  template <class Number>
  [[nodiscard]] Number number(std::span<const std::byte> bytes, std::uint64_t offset) const;
  [[noreturn]] void damaged(const std::string& what) const;

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  std::string name_;
  std::uint16_t machine_ = 0;
  std::vector<Section> sections_;
  std::string soname_;
  std::vector<std::string> needed_;
  std::vector<std::string> rpath_;
  std::vector<std::string> runpath_;
};

}  // namespace yoke::stack
