#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::image {

/// A piece of a file: its bytes [begin, end) and the line, from 1, on which it begins.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  int line = 1;
};

/// A word of a file, with quotes and escapes taken away.
struct Word {
  std::string text{};
  Span where{};
};

/// Why a line of a file is not of its format.
struct SyntaxFault {
  int line = 1;
  std::string reason{};
  std::string fix{};
};

/// One change of a file: the bytes of `where` become `text`; an empty piece inserts.
struct Edit {
  Span where{};
  std::string text{};
};

/// `text` after the edits. Of edits that overlap, the one that begins first stands; of those, the
/// one given first.
[[nodiscard]] std::string apply(std::string_view text, std::vector<Edit> edits);

/// Text whose bytes know where in the file they stood, since a logical line is made of pieces.
///
///   SourceText line;
///   line.add('R', {0, 1});
class SourceText {
 public:
  void add(char byte, std::size_t at, int line);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }

  /// Where the bytes [begin, end) of text() stood. Requires: begin <= end <= text().size().
  [[nodiscard]] Span span(std::size_t begin, std::size_t end) const;

  /// The bytes from `begin` on. Requires: begin <= text().size().
  [[nodiscard]] SourceText from(std::size_t begin) const;

  [[nodiscard]] SourceText without_outer_space() const;

 private:
  struct Place {
    std::size_t at;
    int line;
  };
  std::string text_;
  std::vector<Place> places_;
};

/// Refuses what is no text: a byte 0 or another control byte, more than 16 MiB.
/// Errors: corrupt_data with `name`, the line and the byte.
void check_text(std::string_view text, std::string_view name);

}  // namespace yoke::image
