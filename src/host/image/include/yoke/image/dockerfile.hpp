#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/source_text.hpp"

namespace yoke::image {

/// Variables that a Dockerfile sets, by name.
using Variables = std::map<std::string, std::string>;

struct Heredoc {
  std::string name{};
  bool expands = true;  ///< false where the name is quoted
  SourceText body{};
};

struct Instruction {
  std::string keyword{};  ///< in capitals
  Span where{};           ///< from the keyword to the last byte before the line's end
  std::map<std::string, std::string> flags{};  ///< "from" for --from=NAME
  SourceText arguments{};  ///< after the flags; continuations and comment lines are gone
  std::vector<Heredoc> heredocs{};
  Variables variables{};  ///< what ARG and ENV before it set in its stage

  /// The value of one KEY=VALUE or KEY VALUE pair of an ARG, ENV or LABEL.
  struct Pair {
    std::string key{};
    std::string value{};  ///< expanded
    Span where{};         ///< of the whole pair
    bool has_value = true;
  };
  std::vector<Pair> pairs{};
};

struct Stage {
  std::string name{};      ///< after AS; may be empty
  std::string platform{};  ///< --platform=
  Word base{};             ///< expanded; the place is that of the word as written
  Span where{};            ///< of the FROM instruction
  std::vector<Instruction> instructions{};
};

struct Dockerfile {
  char escape = '\\';
  std::vector<Stage> stages{};
  std::vector<SyntaxFault> faults{};  ///< what docker would refuse
};

/// Reads a Dockerfile as BuildKit does: parser directives, comments, continuations, heredocs,
/// flags, stages, ARG and ENV. What docker would refuse becomes a fault, and reading goes on.
///
/// Errors: as check_text. Cost: linear in the size.
[[nodiscard]] Dockerfile parse_dockerfile(std::string_view text, std::string_view name);

/// `text` with $NAME, ${NAME}, ${NAME:-word}, ${NAME:+word} replaced; what is not set stays as it
/// is written, since a shell may know it.
[[nodiscard]] std::string expand(std::string_view text, const Variables& variables,
                                 char escape = '\\');

/// The stage of that name or number; -1 if there is none before `before`.
[[nodiscard]] int find_stage(const Dockerfile& file, std::string_view name, int before);

}  // namespace yoke::image
