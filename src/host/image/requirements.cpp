#include "yoke/image/requirements.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;

struct OptionName {
  std::string_view written;
  std::string_view name;
  bool has_value;
};

constexpr std::array kOptions{
    OptionName{"-i", "index-url", true},
    OptionName{"--index-url", "index-url", true},
    OptionName{"--pypi-url", "index-url", true},
    OptionName{"--extra-index-url", "extra-index-url", true},
    OptionName{"-f", "find-links", true},
    OptionName{"--find-links", "find-links", true},
    OptionName{"-r", "requirement", true},
    OptionName{"--requirement", "requirement", true},
    OptionName{"-c", "constraint", true},
    OptionName{"--constraint", "constraint", true},
    OptionName{"-e", "editable", true},
    OptionName{"--editable", "editable", true},
    OptionName{"--trusted-host", "trusted-host", true},
    OptionName{"--no-binary", "no-binary", true},
    OptionName{"--only-binary", "only-binary", true},
    OptionName{"--use-feature", "use-feature", true},
    OptionName{"--no-index", "no-index", false},
    OptionName{"--pre", "pre", false},
    OptionName{"--prefer-binary", "prefer-binary", false},
    OptionName{"--require-hashes", "require-hashes", false},
};

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '-' || byte == '_' ||
         byte == '.';
}

std::string normal_name(std::string_view name) {
  std::string out;
  for (const char byte : name) {
    if (byte == '-' || byte == '_' || byte == '.') {
      if (!out.ends_with('-')) out += '-';
    } else {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    }
  }
  return out;
}

std::string without_space(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char byte) { return byte != ' ' && byte != '\t'; });
  return out;
}

/// Whether `text` begins as a condition: an operator and something after it.
bool is_conditions(std::string_view text) {
  for (const std::string& part : core::split(text, ',')) {
    const std::size_t end = part.find_first_not_of("=<>!~");
    if (end == 0 || end == std::string::npos) return false;
    const std::string_view sign = std::string_view(part).substr(0, end);
    constexpr std::array<std::string_view, 8> kSigns{"==", "!=", "<=", ">=", "<", ">", "~=", "==="};
    if (std::find(kSigns.begin(), kSigns.end(), sign) == kSigns.end()) return false;
    const bool bad = part.find_first_of("=<>~", end) != std::string::npos;
    if (bad) return false;
  }
  return true;
}

class RequirementsParser {
 public:
  explicit RequirementsParser(std::string_view file) : file_(file) {}

  RequirementsFile parse() {
    while (at_ < file_.size()) take_logical_line();
    return std::move(out_);
  }

 private:
  /// pip joins lines that end with \ and then drops comments.
  void take_logical_line() {
    SourceText line;
    const int first = number_;
    bool goes_on = true;
    while (goes_on && at_ < file_.size()) {
      const std::size_t end = std::min(file_.find('\n', at_), file_.size());
      std::size_t stop = end;
      if (stop > at_ && file_[stop - 1] == '\r') --stop;
      goes_on = stop > at_ && file_[stop - 1] == '\\' && !is_comment(file_.substr(at_, stop - at_));
      for (std::size_t i = at_; i < stop - (goes_on ? 1 : 0); ++i) line.add(file_[i], i, number_);
      at_ = end + 1;
      ++number_;
    }
    take(without_comment(line).without_outer_space(), first);
  }

  static bool is_comment(std::string_view line) { return core::trimmed(line).starts_with('#'); }

  static SourceText without_comment(const SourceText& line) {
    const std::string& all = line.text();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == '#' && (i == 0 || all[i - 1] == ' ' || all[i - 1] == '\t')) {
        SourceText kept;
        for (std::size_t k = 0; k < i; ++k) {
          const Span place = line.span(k, k + 1);
          kept.add(all[k], place.begin, place.line);
        }
        return kept;
      }
    }
    return line;
  }

  void take(const SourceText& line, int number) {
    if (line.empty()) return;
    if (line.text().starts_with('-')) return take_option(line, number);
    if (is_path(line.text())) return;
    const std::size_t options = line.text().find(" --");
    const std::string_view head = core::trimmed(std::string_view(line.text()).substr(0, options));
    std::optional<Requirement> requirement = parse_requirement(head, line.span(0, head.size()));
    if (!requirement) {
      return fault(number, text("'", head.substr(0, 60), "' is no requirement"),
                   "write NAME==VERSION");
    }
    requirement->has_hash =
        options != std::string::npos && line.text().find("--hash", options) != std::string::npos;
    out_.requirements.push_back(std::move(*requirement));
  }

  static bool is_path(std::string_view line) {
    const std::string_view path = line.substr(0, line.find_first_of(" ;"));
    return path.starts_with('.') || path.starts_with('/') || path.ends_with(".whl") ||
           path.ends_with(".tar.gz") || path.ends_with(".zip") ||
           (path.find("://") != std::string_view::npos);
  }

  void take_option(const SourceText& line, int number) {
    const std::string& all = line.text();
    const std::size_t end = std::min(all.find_first_of(" \t="), all.size());
    const std::string name = all.substr(0, end);
    const auto* known = std::find_if(kOptions.begin(), kOptions.end(),
                                     [&](const OptionName& one) { return one.written == name; });
    if (known == kOptions.end()) {
      return fault(number, text("pip knows no option ", name.substr(0, 40), " here"),
                   "take it away, or give it to pip install");
    }
    const std::string_view value = core::trimmed(
        end < all.size() ? std::string_view(all).substr(end + 1) : std::string_view());
    if (known->has_value && value.empty()) {
      return fault(number, text(name, " has no value"), text("write ", name, " VALUE"));
    }
    const std::size_t begin =
        value.empty() ? 0 : static_cast<std::size_t>(value.data() - all.data());
    out_.options.push_back(
        {std::string(known->name), std::string(value), line.span(begin, begin + value.size())});
  }

  void fault(int line, std::string reason, std::string fix) {
    out_.faults.push_back({line, std::move(reason), std::move(fix)});
  }

  std::string_view file_;
  std::size_t at_ = 0;
  int number_ = 1;
  RequirementsFile out_;
};

}  // namespace

std::optional<std::string> Requirement::exact() const {
  if (!conditions.starts_with("==") || conditions.find_first_of(",*") != std::string::npos) {
    return std::nullopt;
  }
  return conditions.substr(conditions.find_first_not_of('='));
}

std::optional<Requirement> parse_requirement(std::string_view text, Span where) {
  const std::size_t end = static_cast<std::size_t>(
      std::find_if_not(text.begin(), text.end(), is_name_byte) - text.begin());
  if (end == 0 || std::isalnum(static_cast<unsigned char>(text[0])) == 0) return std::nullopt;
  Requirement out{.name = normal_name(text.substr(0, end)), .where = where};
  std::string_view rest = core::trimmed(text.substr(end));
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    out.extras = without_space(rest.substr(0, close + 1));
    rest = core::trimmed(rest.substr(close + 1));
  }
  if (rest.starts_with('@')) {
    const std::size_t marker = std::min(rest.find(" ;"), rest.size());
    out.url = std::string(core::trimmed(rest.substr(1, marker - 1)));
    if (marker < rest.size()) out.marker = std::string(core::trimmed(rest.substr(marker + 2)));
    out.written = std::string(text);
    return out.url.empty() ? std::nullopt : std::optional(out);
  }
  const std::size_t marker = std::min(rest.find(';'), rest.size());
  if (marker < rest.size()) out.marker = std::string(core::trimmed(rest.substr(marker + 1)));
  std::string_view conditions = core::trimmed(rest.substr(0, marker));
  if (conditions.starts_with('(') && conditions.ends_with(')')) {
    conditions = conditions.substr(1, conditions.size() - 2);
  }
  out.conditions = without_space(conditions);
  if (!out.conditions.empty() && !is_conditions(out.conditions)) return std::nullopt;
  out.written = std::string(text.substr(0, end)) + out.extras + out.conditions;
  return out;
}

RequirementsFile parse_requirements(std::string_view text, std::string_view name) {
  check_text(text, name);
  return RequirementsParser(text).parse();
}

}  // namespace yoke::image
