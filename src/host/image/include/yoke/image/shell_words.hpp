#pragma once

#include <string>
#include <vector>

#include "yoke/image/dockerfile.hpp"
#include "yoke/image/source_text.hpp"

namespace yoke::image {

/// One simple command of a shell text: its words with quotes taken away and variables replaced
/// where they are known.
struct ShellCommand {
  std::vector<Word> words{};
  Variables assignments{};  ///< NAME=value words before the program
};

/// The simple commands of an instruction's shell text, heredocs or JSON list, in order. Knows
/// quotes, escapes, comments, && || ; | & ( ) { } and the assignments that stand before; it does
/// not run anything.
[[nodiscard]] std::vector<ShellCommand> shell_commands(const Instruction& instruction);

}  // namespace yoke::image
