#include "yoke/image/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>

#include "yoke/core/json.hpp"

namespace yoke::image {
namespace {

bool is_separator(char byte) {
  return byte == ';' || byte == '&' || byte == '|' || byte == '\n' || byte == '(' || byte == ')';
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  for (const char byte : word.substr(0, equals)) {
    if (std::isalnum(static_cast<unsigned char>(byte)) == 0 && byte != '_') return false;
  }
  return std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

class ShellReader {
 public:
  ShellReader(const SourceText& source, Variables& variables)
      : source_(source), text_(source.text()), variables_(variables) {}

  std::vector<ShellCommand> read() {
    while (at_ < text_.size()) {
      const char byte = text_[at_];
      if (is_separator(byte)) {
        end_command();
        ++at_;
      } else if (byte == ' ' || byte == '\t' || byte == '\r') {
        ++at_;
      } else if (byte == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (byte == '<' || byte == '>') {
        skip_redirection();
      } else {
        take_word();
      }
    }
    end_command();
    return std::move(commands_);
  }

 private:
  void take_word() {
    const std::size_t begin = at_;
    std::string word;
    char quote = '\0';
    for (; at_ < text_.size(); ++at_) {
      const char byte = text_[at_];
      if (quote == '\0' && (is_separator(byte) || byte == ' ' || byte == '\t' || byte == '\r' ||
                            byte == '<' || byte == '>')) {
        break;
      }
      take_byte(byte, quote, word);
    }
    add({std::move(word), source_.span(begin, at_)});
  }

  void take_byte(char byte, char& quote, std::string& word) {
    if (byte == quote) {
      quote = '\0';
    } else if (quote == '\0' && (byte == '"' || byte == '\'')) {
      quote = byte;
    } else if (byte == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
      word += text_[++at_];
    } else if (byte == '$' && quote != '\'') {
      take_reference(word);
    } else {
      word += byte;
    }
  }

  /// A variable's value, or as it is written where it is not known; of $(...) and `...` too.
  void take_reference(std::string& word) {
    std::size_t end = at_ + 1;
    if (end < text_.size() && text_[end] == '(') {
      end = std::min(text_.find(')', end), text_.size() - 1) + 1;
    } else if (end < text_.size() && text_[end] == '{') {
      end = std::min(text_.find('}', end), text_.size() - 1) + 1;
    } else {
      while (end < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_')) {
        ++end;
      }
    }
    word += expand(std::string_view(text_).substr(at_, end - at_), variables_);
    at_ = end - 1;
  }

  /// <file, 2>&1 and the like are no arguments; a heredoc's body is read elsewhere.
  void skip_redirection() {
    while (at_ < text_.size() &&
           (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&' || text_[at_] == '-')) {
      ++at_;
    }
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    while (at_ < text_.size() && !is_separator(text_[at_]) && text_[at_] != ' ') ++at_;
  }

  void add(Word word) {
    if (current_.words.empty() && is_assignment(word.text)) {
      const std::size_t equals = word.text.find('=');
      current_.assignments.insert_or_assign(word.text.substr(0, equals),
                                            word.text.substr(equals + 1));
      return;
    }
    current_.words.push_back(std::move(word));
  }

  void end_command() {
    ShellCommand ended = std::exchange(current_, {});
    if (ended.words.empty() || ended.words.front().text == "export") {
      for (const auto& [name, value] : ended.assignments) variables_.insert_or_assign(name, value);
      for (const Word& word : ended.words) {
        const std::size_t equals = word.text.find('=');
        if (equals != std::string::npos) {
          variables_.insert_or_assign(word.text.substr(0, equals), word.text.substr(equals + 1));
        }
      }
    }
    if (!ended.words.empty()) commands_.push_back(std::move(ended));
  }

  const SourceText& source_;
  const std::string& text_;
  Variables& variables_;
  std::size_t at_ = 0;
  ShellCommand current_;
  std::vector<ShellCommand> commands_;
};

/// RUN ["pip", "install", ...]; nothing where the text is no such list.
std::vector<ShellCommand> json_command(const SourceText& source) {
  const core::Json list = core::Json::parse(source.text(), nullptr, false);
  if (!list.is_array() || list.empty()) return {};
  ShellCommand command;
  std::size_t at = 0;
  for (const core::Json& item : list) {
    if (!item.is_string()) return {};
    const std::string word = item.get<std::string>();
    const std::size_t found = source.text().find(word, at);
    const std::size_t begin = found == std::string::npos ? at : found;
    command.words.push_back({word, source.span(begin, begin + word.size())});
    at = std::min(begin + word.size(), source.text().size());
  }
  return {command};
}

/// A heredoc is a script where RUN itself or a shell reads it, else somebody's data.
bool feeds_a_shell(const std::vector<ShellCommand>& commands) {
  if (commands.empty()) return true;
  const std::string& program = commands.back().words.front().text;
  return program == "sh" || program == "bash" || program.ends_with("/sh") ||
         program.ends_with("/bash");
}

}  // namespace

std::vector<ShellCommand> shell_commands(const Instruction& instruction) {
  if (instruction.arguments.text().starts_with('[')) {
    std::vector<ShellCommand> commands = json_command(instruction.arguments);
    if (!commands.empty()) return commands;
  }
  Variables variables = instruction.variables;
  std::vector<ShellCommand> commands = ShellReader(instruction.arguments, variables).read();
  if (!feeds_a_shell(commands)) return commands;
  for (const Heredoc& heredoc : instruction.heredocs) {
    for (ShellCommand& command : ShellReader(heredoc.body, variables).read()) {
      commands.push_back(std::move(command));
    }
  }
  return commands;
}

}  // namespace yoke::image
