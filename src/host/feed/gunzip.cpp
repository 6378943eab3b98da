#include "gunzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;  // zlib's way to ask for the gzip wrapper

uInt at_most_a_uint(std::size_t count) {
  return static_cast<uInt>(std::min<std::size_t>(count, std::numeric_limits<uInt>::max()));
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

struct Gunzip::State {
  std::span<const std::byte> packed;
  std::filesystem::path path;
  z_stream stream{};
  std::size_t consumed = 0;
  std::uint64_t unpacked = 0;
  bool at_end = false;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::corrupt_data,
                core::text("unpack ", path.string(), ": ", what, " (after ", consumed, " of ",
                           packed.size(), " bytes of gzip data, ", unpacked, " bytes unpacked)"),
                "the file is damaged or was cut short: fetch it again");
  }

  // After one member: another one, nothing, or zeros up to a block's end, which tapes leave behind.
  void go_to_next_member() {
    const auto rest = packed.subspan(consumed);
    if (is_gzip(rest)) {
      inflateReset(&stream);
      return;
    }
    if (std::ranges::any_of(rest, [](std::byte byte) { return byte != std::byte{0}; })) {
      fail(core::text(rest.size(), " trailing bytes that are not gzip data"));
    }
    at_end = true;
  }

  std::size_t step(std::span<std::byte> out) {
    const auto rest = packed.subspan(consumed);
    // zlib does not write through next_in, but its type predates const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
    stream.avail_in = at_most_a_uint(rest.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = at_most_a_uint(out.size());
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t produced = out_before - stream.avail_out;
    consumed += in_before - stream.avail_in;
    unpacked += produced;
    if (status == Z_STREAM_END) {
      go_to_next_member();
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && consumed == packed.size() && produced == 0)) {
      fail("the gzip data ends too early");
    } else if (status != Z_OK) {
      fail(core::text("broken gzip data: ", stream.msg != nullptr ? stream.msg : zError(status)));
    }
    return produced;
  }
};

Gunzip::Gunzip(std::span<const std::byte> packed, std::filesystem::path path)
    : state_(std::make_unique<State>()) {
  state_->packed = packed;
  state_->path = std::move(path);
  if (inflateInit2(&state_->stream, kGzipOnly) != Z_OK) {
    throw Error(Code::internal,
                core::text("unpack ", state_->path.string(), ": zlib did not start"));
  }
}

Gunzip::~Gunzip() { inflateEnd(&state_->stream); }

std::size_t Gunzip::read(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size() && !state_->at_end) filled += state_->step(out.subspan(filled));
  return filled;
}

}  // namespace yoke::feed
