#include "yoke/image/layer.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kLongestName = 1 << 20;

struct Close {
  void operator()(gzFile file) const { ::gzclose(file); }
};

/// Walks the headers of a tar.
class TarReader {
 public:
  /// `wanted`: a file whose bytes are kept.
  explicit TarReader(const fs::path& file, std::string wanted = {})
      : name_(file.string()), wanted_(std::move(wanted)) {
    if (!fs::is_regular_file(file))
      throw Error(Code::not_found, text("read ", name_, ": no such file"));
    file_.reset(::gzopen(name_.c_str(), "rb"));
    if (file_ == nullptr) throw Error(Code::io, text("read ", name_, ": ", std::strerror(errno)));
  }

  std::vector<LayerEntry> read() {
    std::vector<LayerEntry> entries;
    while (auto entry = next()) entries.push_back(std::move(*entry));
    return entries;
  }

  std::optional<std::string> find() {
    while (!found_ && next()) {
    }
    return std::move(found_);
  }

 private:
  std::optional<LayerEntry> next() {
    std::string long_path;
    std::string long_target;
    while (true) {
      std::array<char, kBlock> header{};
      if (!block(header) || header[0] == '\0') return std::nullopt;
      check(header);
      const std::uint64_t size = number(header, 124, 12);
      const char kind = header[156] == '\0' ? '0' : header[156];
      if (kind == 'L' || kind == 'K') {
        (kind == 'L' ? long_path : long_target) = content(size);
      } else if (kind == 'x') {
        take_records(content(size), long_path, long_target);
      } else {
        LayerEntry entry{.path = bare(long_path.empty() ? path_of(header) : long_path),
                         .kind = kind,
                         .size = size,
                         .target = long_target.empty() ? field(header, 157, 100) : long_target,
                         .time = static_cast<std::int64_t>(number(header, 136, 12))};
        if (kind == '0' && !wanted_.empty() && entry.path == wanted_) {
          found_ = content(size);
        } else {
          skip(size);
        }
        if (kind == 'g') continue;
        return entry;
      }
    }
  }

  static std::string bare(std::string path) {
    while (path.starts_with("./") || path.starts_with('/')) path.erase(0, path.find('/') + 1);
    while (path.ends_with('/')) path.pop_back();
    return path;
  }

  bool block(std::array<char, kBlock>& out) {
    const int count = ::gzread(file_.get(), out.data(), static_cast<unsigned>(kBlock));
    if (count == 0) return false;
    if (count != static_cast<int>(kBlock)) damaged("cut short");
    at_ += kBlock;
    return true;
  }

  void check(const std::array<char, kBlock>& header) {
    if (at_ == kBlock && std::string_view(header.data(), 4) == "\x28\xB5\x2F\xFD") {
      throw Error(Code::unsupported, text("read ", name_, ": compressed by zstd"),
                  "unpack it with zstd -d first");
    }
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      sum += i >= 148 && i < 156 ? std::uint64_t{' '} : static_cast<unsigned char>(header[i]);
    }
    if (sum != number(header, 148, 8)) damaged("a header's checksum is wrong");
  }

  std::uint64_t number(const std::array<char, kBlock>& header, std::size_t begin,
                       std::size_t count) {
    std::uint64_t value = 0;
    if ((static_cast<unsigned char>(header[begin]) & 0x80U) != 0) {  // GNU's form for large files
      for (std::size_t i = count - 8; i < count; ++i)
        value = value << 8 | static_cast<unsigned char>(header[begin + i]);
      if (value >> 62 != 0) damaged("a size is too large");
      return value;
    }
    for (std::size_t i = begin; i < begin + count; ++i) {
      if (header[i] >= '0' && header[i] <= '7')
        value = value * 8 + static_cast<std::uint64_t>(header[i] - '0');
    }
    return value;
  }

  static std::string field(const std::array<char, kBlock>& header, std::size_t begin,
                           std::size_t count) {
    const auto* first = header.data() + begin;
    return {first, std::find(first, first + count, '\0')};
  }

  static std::string path_of(const std::array<char, kBlock>& header) {
    const std::string prefix =
        std::string_view(header.data() + 257, 6) == std::string_view("ustar\0", 6)
            ? field(header, 345, 155)
            : "";
    return prefix.empty() ? field(header, 0, 100) : prefix + "/" + field(header, 0, 100);
  }

  std::string content(std::uint64_t size) {
    if (size > kLongestName) damaged(text("a name of ", size, " bytes"));
    std::string out;
    std::array<char, kBlock> piece{};
    while (out.size() < size) {
      if (!block(piece)) damaged("cut short");
      out.append(piece.data(), kBlock);
    }
    out.resize(size);
    return out.substr(0, out.find('\0'));
  }

  void skip(std::uint64_t size) {
    const std::uint64_t blocks = (size + kBlock - 1) / kBlock;
    std::array<char, kBlock> piece{};
    for (std::uint64_t i = 0; i < blocks; ++i) {
      if (!block(piece)) damaged("cut short");
    }
  }

  /// "LENGTH key=value\n" of pax.
  static void take_records(const std::string& records, std::string& path, std::string& target) {
    for (const std::string& line : core::split(records, '\n')) {
      const std::size_t space = line.find(' ');
      const std::size_t equals = line.find('=');
      if (space == std::string::npos || equals == std::string::npos || equals < space) continue;
      const std::string key = line.substr(space + 1, equals - space - 1);
      if (key == "path") path = line.substr(equals + 1);
      if (key == "linkpath") target = line.substr(equals + 1);
    }
  }

  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(Code::corrupt_data, text("read ", name_, ": no tar: ", what, " before byte ", at_));
  }

  std::string name_;
  std::string wanted_;
  std::optional<std::string> found_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::uint64_t at_ = 0;
};

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// A library that comes with the driver alone: libcuda.so.418.56, libnvidia-ml.so.1.
bool is_driver_library(const std::string& path) {
  const std::string name = last_part(path);
  const bool is_library = name.find(".so") != std::string::npos;
  return is_library &&
         (name.starts_with("libcuda.so") || name.starts_with("libcudadebugger.so") ||
          name.starts_with("libnvcuvid.so") ||
          (name.starts_with("libnvidia-") && !name.starts_with("libnvidia-container")));
}

/// Stubs are made to link against, and cuda-compat's libraries are meant to be there.
bool has_its_place(const std::string& path) {
  return path.find("/stubs/") != std::string::npos || path.find("/compat/") != std::string::npos;
}

}  // namespace

std::vector<LayerEntry> read_layer(const fs::path& file) { return TarReader(file).read(); }

std::optional<std::string> read_from_layer(const fs::path& file, const std::string& path) {
  return TarReader(file, path).find();
}

std::vector<LayerFault> check_layer(const std::vector<LayerEntry>& entries) {
  std::vector<LayerFault> faults;
  for (const LayerEntry& entry : entries) {
    if (!is_driver_library(entry.path) || has_its_place(entry.path)) continue;
    if (entry.kind == '0' && entry.size == 0) {
      faults.push_back(
          {Severity::error, entry.path,
           "empty driver file: the runtime's own cannot be put there on another host"});
    } else if (entry.kind == '0') {
      faults.push_back({Severity::warning, entry.path,
                        text("a copy of the driver (", core::bytes_text(entry.size),
                             "), of no use with another driver")});
    } else if (entry.kind == '1' || entry.kind == '2') {
      faults.push_back(
          {Severity::warning, entry.path, text("link to ", entry.target, " of a driver")});
    }
  }
  return faults;
}

}  // namespace yoke::image
