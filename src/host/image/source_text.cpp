#include "yoke/image/source_text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

bool is_text(unsigned char byte) {
  return byte >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t' || byte == '\f';
}

std::string hexadecimal(unsigned char byte) {
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "0x%02x", static_cast<unsigned>(byte));
  return digits.data();
}

}  // namespace

std::string apply(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.where.begin < b.where.begin; });
  std::string out;
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    if (edit.where.begin < done || edit.where.end > text.size()) continue;
    out += text.substr(done, edit.where.begin - done);
    out += edit.text;
    done = edit.where.end;
  }
  out += text.substr(std::min(done, text.size()));
  return out;
}

void SourceText::add(char byte, std::size_t at, int line) {
  text_.push_back(byte);
  places_.push_back({at, line});
}

Span SourceText::span(std::size_t begin, std::size_t end) const {
  if (places_.empty()) return {};
  if (begin >= places_.size()) {
    const Place& last = places_.back();
    return {last.at + 1, last.at + 1, last.line};
  }
  const std::size_t last = std::max(begin + 1, end) - 1;
  const std::size_t stop = end > begin ? places_[last].at + 1 : places_[begin].at;
  return {places_[begin].at, stop, places_[begin].line};
}

SourceText SourceText::from(std::size_t begin) const {
  SourceText rest;
  rest.text_ = text_.substr(begin);
  rest.places_.assign(places_.begin() + static_cast<std::ptrdiff_t>(begin), places_.end());
  return rest;
}

SourceText SourceText::without_outer_space() const {
  const std::size_t first = text_.find_first_not_of(" \t\r\n\f");
  if (first == std::string::npos) return {};
  SourceText inner = from(first);
  const std::size_t size = inner.text_.find_last_not_of(" \t\r\n\f") + 1;
  inner.text_.resize(size);
  inner.places_.resize(size);
  return inner;
}

void check_text(std::string_view text, std::string_view name) {
  if (text.size() > kMostBytes) {
    throw Error(Code::corrupt_data,
                core::text("read ", name, ": ", core::bytes_text(text.size()), ", the limit is ",
                           core::bytes_text(kMostBytes)),
                "is this the file you meant?");
  }
  const auto* bad = std::find_if_not(text.begin(), text.end(), [](char byte) {
    return is_text(static_cast<unsigned char>(byte));
  });
  if (bad == text.end()) return;
  const auto line = 1 + std::count(text.begin(), bad, '\n');
  throw Error(Code::corrupt_data,
              core::text("read ", name, ": not a text file, line ", line, " holds the byte ",
                         hexadecimal(static_cast<unsigned char>(*bad))),
              "is this the file you meant?");
}

}  // namespace yoke::image
