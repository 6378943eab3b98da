#include "yoke/image/dockerfile.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;

constexpr std::array<std::string_view, 18> kKeywords{
    "ADD",    "ARG",   "CMD",         "COPY",  "ENTRYPOINT", "ENV",
    "EXPOSE", "FROM",  "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
    "RUN",    "SHELL", "STOPSIGNAL",  "USER",  "VOLUME",     "WORKDIR"};

bool is_blank(char byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\f'; }

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

std::string upper(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::toupper(byte)); });
  return out;
}

struct Line {
  std::string_view text{};  // without its end
  std::size_t at = 0;
  int number = 1;
};

/// The lines of a file, one after the other.
class Lines {
 public:
  explicit Lines(std::string_view file) : file_(file) {}

  [[nodiscard]] std::optional<Line> peek() const {
    if (at_ >= file_.size()) return std::nullopt;
    const std::size_t end = std::min(file_.find('\n', at_), file_.size());
    return Line{file_.substr(at_, end - at_), at_, number_};
  }

  std::optional<Line> next() {
    const std::optional<Line> line = peek();
    if (line) {
      at_ = line->at + line->text.size() + 1;
      ++number_;
    }
    return line;
  }

 private:
  std::string_view file_;
  std::size_t at_ = 0;
  int number_ = 1;
};

bool is_comment(std::string_view line) {
  const std::string_view inner = core::trimmed(line);
  return !inner.empty() && inner.front() == '#';
}

/// Where the line goes on in the next one: the place of its escape; npos if it does not.
std::size_t continuation(std::string_view line, char escape) {
  std::size_t end = line.size();
  while (end > 0 && is_blank(line[end - 1])) --end;
  const bool goes_on = end > 0 && line[end - 1] == escape && (end < 2 || line[end - 2] != escape);
  return goes_on ? end - 1 : std::string_view::npos;
}

void append(SourceText& out, const Line& line, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out.add(line.text[i], line.at + i, line.number);
}

/// One heredoc's head, <<NAME, <<-NAME or <<"NAME", as it stands in a line.
struct HeredocHead {
  std::string name{};
  bool expands = true;
  bool strips_tabs = false;
};

std::optional<HeredocHead> heredoc_head(std::string_view line, std::size_t& at) {
  HeredocHead head;
  std::size_t i = at + 2;
  if (i < line.size() && line[i] == '-') head.strips_tabs = ++i > 0;
  const char quote = i < line.size() && (line[i] == '"' || line[i] == '\'') ? line[i] : '\0';
  if (quote != '\0') ++i;
  const std::size_t begin = i;
  while (i < line.size() && is_name_byte(line[i])) ++i;
  head.name = std::string(line.substr(begin, i - begin));
  head.expands = quote == '\0';
  const bool closed = quote == '\0' || (i < line.size() && line[i] == quote);
  if (head.name.empty() || std::isdigit(static_cast<unsigned char>(head.name[0])) != 0 || !closed) {
    return std::nullopt;
  }
  at = i;
  return head;
}

std::vector<HeredocHead> heredoc_heads(std::string_view line) {
  std::vector<HeredocHead> heads;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char byte = line[i];
    if (quote != '\0') {
      if (byte == quote) quote = '\0';
    } else if (byte == '"' || byte == '\'') {
      quote = byte;
    } else if (line.substr(i).starts_with("<<<")) {
      i += 2;
    } else if (line.substr(i).starts_with("<<")) {
      if (auto head = heredoc_head(line, i)) heads.push_back(std::move(*head));
    }
  }
  return heads;
}

/// A reference to a variable that begins at `at` with '$'; `at` moves to its last byte.
struct Reference {
  std::string name{};
  char operation = '\0';  // of ${NAME:-word} and ${NAME:+word}: '-' or '+'
  std::string word{};
};

std::optional<Reference> braced_reference(std::string_view text, std::size_t& at) {
  const std::size_t close = text.find('}', at);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inner = text.substr(at + 2, close - at - 2);
  const std::size_t end = static_cast<std::size_t>(
      std::find_if_not(inner.begin(), inner.end(), is_name_byte) - inner.begin());
  Reference reference{.name = std::string(inner.substr(0, end))};
  std::string_view rest = inner.substr(end);
  if (rest.starts_with(':')) rest.remove_prefix(1);
  if (!rest.empty()) {
    if (rest[0] != '-' && rest[0] != '+') return std::nullopt;
    reference.operation = rest[0];
    reference.word = std::string(rest.substr(1));
  }
  if (reference.name.empty()) return std::nullopt;
  at = close;
  return reference;
}

std::optional<Reference> reference_at(std::string_view text, std::size_t& at) {
  if (at + 1 >= text.size()) return std::nullopt;
  if (text[at + 1] == '{') return braced_reference(text, at);
  std::size_t end = at + 1;
  while (end < text.size() && is_name_byte(text[end])) ++end;
  if (end == at + 1) return std::nullopt;
  Reference reference{.name = std::string(text.substr(at + 1, end - at - 1))};
  at = end - 1;
  return reference;
}

/// Writes what the reference at `at` stands for and moves `at` to its last byte.
void expand_reference(std::string_view text, std::size_t& at, const Variables& variables,
                      std::string& out) {
  const std::size_t begin = at;
  const std::optional<Reference> reference = reference_at(text, at);
  if (!reference) {
    out += text[at];
    return;
  }
  const auto found = variables.find(reference->name);
  const bool is_set = found != variables.end() && !found->second.empty();
  if (reference->operation == '+') {
    out += is_set ? reference->word : std::string();
  } else if (is_set) {
    out += found->second;
  } else if (reference->operation == '-') {
    out += reference->word;
  } else if (found == variables.end()) {
    out += text.substr(begin, at - begin + 1);
  }
}

/// Reads the words of KEY=VALUE ..., with quotes, escapes and variables.
class PairReader {
 public:
  PairReader(const SourceText& source, const Variables& variables, char escape)
      : source_(source), text_(source.text()), variables_(variables), escape_(escape) {}

  std::vector<Instruction::Pair> read() {
    std::vector<Instruction::Pair> pairs;
    while (skip_space()) {
      const std::size_t begin = at_;
      const std::string word = take_word();
      const std::size_t equals = word.find('=');
      Instruction::Pair pair{.key = word.substr(0, equals), .where = source_.span(begin, at_)};
      pair.has_value = equals != std::string::npos;
      if (pair.has_value) pair.value = word.substr(equals + 1);
      pairs.push_back(std::move(pair));
    }
    return pairs;
  }

 private:
  bool skip_space() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == '\n')) ++at_;
    return at_ < text_.size();
  }

  std::string take_word() {
    std::string out;
    char quote = '\0';
    for (; at_ < text_.size(); ++at_) {
      const char byte = text_[at_];
      if (quote == '\0' && (is_blank(byte) || byte == '\n')) break;
      if (byte == quote) {
        quote = '\0';
      } else if (quote == '\0' && (byte == '"' || byte == '\'')) {
        quote = byte;
      } else if (byte == escape_ && quote != '\'' && at_ + 1 < text_.size()) {
        out += text_[++at_];
      } else if (byte == '$' && quote != '\'') {
        expand_reference(text_, at_, variables_, out);
      } else {
        out += byte;
      }
    }
    return out;
  }

  const SourceText& source_;
  const std::string& text_;
  const Variables& variables_;
  char escape_;
  std::size_t at_ = 0;
};

/// Takes "--name=value" from the front of `source` while there are any.
std::map<std::string, std::string> take_flags(SourceText& source) {
  std::map<std::string, std::string> flags;
  while (source.text().starts_with("--")) {
    const std::string& all = source.text();
    const std::size_t end = std::min(all.find_first_of(" \t\n"), all.size());
    const std::string flag = all.substr(2, end - 2);
    const std::size_t equals = flag.find('=');
    flags.insert_or_assign(flag.substr(0, equals),
                           equals == std::string::npos ? "" : flag.substr(equals + 1));
    source = source.from(end).without_outer_space();
  }
  return flags;
}

std::vector<Word> plain_words(const SourceText& source) {
  std::vector<Word> words;
  const std::string& all = source.text();
  std::size_t at = 0;
  while ((at = all.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const std::size_t end = std::min(all.find_first_of(" \t\r\n", at), all.size());
    words.push_back({all.substr(at, end - at), source.span(at, end)});
    at = end;
  }
  return words;
}

class DockerfileParser {
 public:
  explicit DockerfileParser(std::string_view file) : lines_(file) {}

  Dockerfile parse() {
    read_directives();
    while (const auto line = lines_.peek()) {
      if (core::trimmed(line->text).empty() || is_comment(line->text)) {
        lines_.next();
      } else {
        read_instruction();
      }
    }
    if (file_.stages.empty()) {
      fault(1, "there is no FROM, so nothing to build on", "begin with FROM IMAGE");
    }
    return std::move(file_);
  }

 private:
  void fault(int line, std::string reason, std::string fix) {
    file_.faults.push_back({line, std::move(reason), std::move(fix)});
  }

  /// "# name=value" lines that come before everything else.
  void read_directives() {
    while (const auto line = lines_.peek()) {
      const std::string_view inner = core::trimmed(line->text);
      if (!inner.starts_with('#')) return;
      const std::size_t equals = inner.find('=');
      const std::string name = upper(core::trimmed(inner.substr(1, equals - 1)));
      if (equals == std::string_view::npos ||
          (name != "ESCAPE" && name != "SYNTAX" && name != "CHECK")) {
        return;
      }
      const std::string_view value = core::trimmed(inner.substr(equals + 1));
      if (name == "ESCAPE") set_escape(line->number, value);
      lines_.next();
    }
  }

  void set_escape(int line, std::string_view value) {
    if (value == "\\" || value == "`") {
      file_.escape = value[0];
    } else {
      fault(line, text("the escape directive is '", value, "'"), "use \\ or `");
    }
  }

  /// One instruction over all its lines, with its heredocs.
  void read_instruction() {
    SourceText whole;
    const int first = lines_.peek()->number;
    bool goes_on = true;
    while (goes_on) {
      const auto line = lines_.next();
      if (!line) break;
      if (!whole.empty() && (is_comment(line->text) || core::trimmed(line->text).empty())) continue;
      const std::size_t end = continuation(line->text, file_.escape);
      goes_on = end != std::string_view::npos;
      append(whole, *line, std::min(end, line->text.size()));
    }
    if (goes_on) {
      fault(first, "the last line of the file ends with a continuation", "take the escape away");
    }
    split(whole.without_outer_space(), first);
  }

  void split(const SourceText& whole, int line) {
    const std::string& all = whole.text();
    if (all.empty()) return;
    const std::size_t end = std::min(all.find_first_of(" \t"), all.size());
    Instruction instruction{.keyword = upper(all.substr(0, end)),
                            .where = whole.span(0, all.size())};
    const auto* known = std::find(kKeywords.begin(), kKeywords.end(), instruction.keyword);
    if (known == kKeywords.end()) {
      const std::vector<std::string> names(kKeywords.begin(), kKeywords.end());
      fault(line, text("unknown instruction ", all.substr(0, std::min<std::size_t>(end, 40))),
            core::nearest(instruction.keyword, names)
                ? core::unknown_name_hint(instruction.keyword, names)
                : "a line that goes on needs a \\ at the end of the line before it");
      return;
    }
    instruction.arguments = whole.from(end).without_outer_space();
    if (instruction.arguments.empty()) {
      fault(line, text(instruction.keyword, " has no arguments"),
            text("give it some, or remove the line"));
      return;
    }
    instruction.flags = take_flags(instruction.arguments);
    read_heredocs(instruction, line);
    place(std::move(instruction), line);
  }

  void read_heredocs(Instruction& instruction, int line) {
    const std::string& keyword = instruction.keyword;
    if (keyword != "RUN" && keyword != "COPY" && keyword != "ADD") return;
    for (const HeredocHead& head : heredoc_heads(instruction.arguments.text())) {
      Heredoc heredoc{.name = head.name, .expands = head.expands};
      if (!read_body(head, heredoc.body)) {
        fault(line, text("the heredoc <<", head.name, " is not closed before the file ends"),
              text("put ", head.name, " on a line of its own after it"));
      }
      instruction.heredocs.push_back(std::move(heredoc));
    }
  }

  bool read_body(const HeredocHead& head, SourceText& body) {
    while (const auto line = lines_.next()) {
      std::string_view shown = line->text;
      if (shown.ends_with('\r')) shown.remove_suffix(1);
      if (head.strips_tabs)
        shown.remove_prefix(std::min(shown.find_first_not_of('\t'), shown.size()));
      if (shown == head.name) return true;
      append(body, *line, line->text.size());
      body.add('\n', line->at + line->text.size(), line->number);
    }
    return false;
  }

  void place(Instruction instruction, int line) {
    instruction.variables = file_.stages.empty() ? global_ : variables_;
    if (instruction.keyword == "FROM") return begin_stage(instruction, line);
    if (instruction.keyword == "ARG" || instruction.keyword == "ENV") {
      define(instruction, line);
    } else if (instruction.keyword == "LABEL") {
      instruction.pairs = PairReader(instruction.arguments, variables_, file_.escape).read();
    }
    if (!file_.stages.empty()) {
      file_.stages.back().instructions.push_back(std::move(instruction));
    } else if (instruction.keyword != "ARG") {
      fault(line, text(instruction.keyword, " stands before the first FROM"),
            "only ARG may stand there");
    }
  }

  void define(Instruction& instruction, int line) {
    Variables& variables = file_.stages.empty() ? global_ : variables_;
    instruction.pairs = PairReader(instruction.arguments, variables, file_.escape).read();
    const bool is_env = instruction.keyword == "ENV";
    if (is_env && !instruction.pairs.empty() && !instruction.pairs.front().has_value) {
      take_old_form(instruction, variables, line);
    }
    for (const Instruction::Pair& pair : instruction.pairs) set(variables, pair, is_env);
  }

  /// ENV NAME value, the form before KEY=VALUE.
  void take_old_form(Instruction& instruction, const Variables& variables, int line) {
    const std::string& all = instruction.arguments.text();
    const std::size_t end = std::min(all.find_first_of(" \t"), all.size());
    if (end == all.size()) {
      fault(line, text("ENV ", all, " has no value"), text("write ENV ", all, "=VALUE"));
      return;
    }
    const SourceText value = instruction.arguments.from(end).without_outer_space();
    instruction.pairs = {{.key = all.substr(0, end),
                          .value = expand(value.text(), variables, file_.escape),
                          .where = instruction.arguments.span(0, all.size())}};
  }

  void set(Variables& variables, const Instruction::Pair& pair, bool is_env) {
    if (pair.has_value) {
      variables.insert_or_assign(pair.key, pair.value);
    } else if (const auto global = global_.find(pair.key); !is_env && global != global_.end()) {
      variables.insert_or_assign(pair.key, global->second);
    }
  }

  void begin_stage(const Instruction& instruction, int line) {
    const std::vector<Word> words = plain_words(instruction.arguments);
    if (words.empty()) return fault(line, "FROM names no image", "write FROM IMAGE");
    if (words.size() != 1 && (words.size() != 3 || upper(words[1].text) != "AS")) {
      fault(line, text("FROM has ", words.size(), " words"),
            "write FROM IMAGE or FROM IMAGE AS NAME");
    }
    Stage stage{.base = words.front(), .where = instruction.where};
    stage.base.text = expand(stage.base.text, global_, file_.escape);
    if (words.size() == 3) stage.name = words[2].text;
    if (const auto flag = instruction.flags.find("platform"); flag != instruction.flags.end()) {
      stage.platform = expand(flag->second, global_, file_.escape);
    }
    inherit(stage);
    file_.stages.push_back(std::move(stage));
  }

  /// A stage on another stage begins with that one's ENV; ARG is each stage's own, but telling
  /// them apart would only lose what a shell sees.
  void inherit(const Stage& stage) {
    const int parent = find_stage(file_, stage.base.text, static_cast<int>(file_.stages.size()));
    ended_.push_back(std::exchange(variables_, {}));
    if (parent >= 0) variables_ = ended_[static_cast<std::size_t>(parent) + 1];
  }

  Lines lines_;
  Dockerfile file_;
  Variables global_;
  Variables variables_;
  std::vector<Variables> ended_;  // [1 + stage]: its variables at its end
};

}  // namespace

std::string expand(std::string_view text, const Variables& variables, char escape) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == escape && at + 1 < text.size() && text[at + 1] == '$') {
      out += text[++at];
    } else if (text[at] == '$') {
      expand_reference(text, at, variables, out);
    } else {
      out += text[at];
    }
  }
  return out;
}

int find_stage(const Dockerfile& file, std::string_view name, int before) {
  for (int i = before - 1; i >= 0; --i) {
    if (upper(file.stages[static_cast<std::size_t>(i)].name) == upper(name)) return i;
  }
  const auto number = core::parse_integer(name);
  return number && *number >= 0 && *number < before ? static_cast<int>(*number) : -1;
}

Dockerfile parse_dockerfile(std::string_view text, std::string_view name) {
  check_text(text, name);
  return DockerfileParser(text).parse();
}

}  // namespace yoke::image
