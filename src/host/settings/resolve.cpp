#include "yoke/settings/resolve.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "read_toml.hpp"
#include "value.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::settings {
namespace {

namespace fs = std::filesystem;
using core::Code;
using core::Error;
using core::text;
using Values = std::map<std::string, Setting>;

/// The words of each option's flags, in their order.
using Flags = std::map<std::string, std::vector<std::string>>;

/// Who asks for help gets it, whatever else is wrong.
bool asks_for_help(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
}

[[noreturn]] void refuse_unknown_flag(const Schema& schema, const std::string& name) {
  const auto near = core::nearest(name, schema.names());
  throw Error(Code::invalid_argument, text("--", name, ": unknown flag"),
              near ? "did you mean --" + *near + "?" : "--help lists the flags");
}

/// Reads one argument after the other into Flags.
class FlagReader {
 public:
  FlagReader(const Schema& schema, const std::vector<std::string>& arguments)
      : schema_(schema), arguments_(arguments) {}

  Flags read() && {
    while (at_ < arguments_.size()) take(arguments_[at_++]);
    return std::move(flags_);
  }

 private:
  void take(const std::string& argument) {
    if (!argument.starts_with("--") || argument == "--") {
      throw Error(Code::invalid_argument, text("unexpected argument \"", argument, "\""),
                  "flags begin with --; --help lists them");
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (const Option* option = schema_.find(name)) {
      flags_[option->key].push_back(equals == std::string::npos ? word_of(*option, argument)
                                                                : argument.substr(equals + 1));
    } else if (const Option* toggle = negated(name);
               toggle != nullptr && equals == std::string::npos) {
      flags_[toggle->key].emplace_back("false");
    } else {
      refuse_unknown_flag(schema_, name);
    }
  }

  [[nodiscard]] const Option* negated(const std::string& name) const {
    if (!name.starts_with("no-")) return nullptr;
    const Option* option = schema_.find(name.substr(3));
    return option != nullptr && option->type == Type::toggle ? option : nullptr;
  }

  /// The word after `--key`; a toggle has none.
  std::string word_of(const Option& option, const std::string& argument) {
    if (option.type == Type::toggle) return "true";
    if (at_ == arguments_.size() || arguments_[at_].starts_with("--")) {
      throw Error(Code::invalid_argument, text(argument, ": no value follows"),
                  "allowed: " + allowed_text(option));
    }
    return arguments_[at_++];
  }

  const Schema& schema_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  Flags flags_;
};

void add_flags(Values& values, const Schema& schema, const Flags& flags) {
  for (const auto& [key, words] : flags) {
    const Option& option = *schema.find(key);
    const Place place = text("--", key, " ", core::joined(words, " "));
    values[key] = {.value = value_from_words(option, words, place),
                   .origin = {.source = Source::flag}};
  }
}

/// An empty variable counts as absent, as scripts leave them.
void add_variables(Values& values, const Schema& schema, const core::EnvironmentMap& variables) {
  for (const Option& option : schema.options()) {
    const std::string name = variable_name(option);
    const std::string word = core::value_or(variables, name);
    if (word.empty()) continue;
    values[option.key] = {.value = value_from_words(option, {word}, text(name, "=", word)),
                          .origin = {.source = Source::variable, .name = name}};
  }
}

const Option& option_of(const Schema& schema, const TomlEntry& entry, const Place& place) {
  const Option* option = schema.find(entry.key);
  if (option == nullptr) {
    throw Error(Code::invalid_argument, place + ": unknown key",
                core::unknown_name_hint(entry.key, schema.names()));
  }
  if (option->per_call) {
    throw Error(Code::invalid_argument, place + ": belongs to one command, not into a file",
                text("give it as --", option->key));
  }
  return *option;
}

void add_file(Values& values, const Schema& schema, const fs::path& file, Source source) {
  const std::string what = source == Source::site ? "site" : "recipe";
  std::map<std::string, std::string> seen;  // key and file:line, to find one key in two spellings
  for (const TomlEntry& entry : read_toml(file, what)) {
    const Option& option =
        option_of(schema, entry, text(what, " ", entry.file_line, ": ", entry.key));
    const Place place = text(what, " ", entry.file_line, ": ", entry.key, " = ", entry.shown);
    const std::string in_file = entry.file_line.substr(0, entry.file_line.rfind(':'));
    const auto [before, is_new] = seen.emplace(in_file + '\n' + option.key, entry.file_line);
    if (!is_new) {
      throw Error(Code::invalid_argument, place + ": given before in " + before->second,
                  "keep one of the two");
    }
    values[option.key] = {.value = value_from_scalars(option, entry.scalars, entry.is_array, place),
                          .origin = {.source = source, .name = entry.file_line}};
  }
}

void add_site(Values& values, const Schema& schema, const Sources& sources) {
  const std::string named = core::value_or(sources.variables, "YOKE_SITE_FILE");
  std::error_code error;
  if (!named.empty()) {
    add_file(values, schema, named, Source::site);
  } else if (fs::exists(sources.site_file, error)) {
    add_file(values, schema, sources.site_file, Source::site);
  }
}

/// The recipe that the flags or the variables name.
std::string recipe_name(const Schema& schema, const Values& from_call) {
  const Option* option = schema.find("recipe");
  if (option == nullptr) return {};
  const auto found = from_call.find(option->key);
  return found == from_call.end() ? std::string() : std::get<std::string>(found->second.value);
}

}  // namespace

std::string Origin::text() const {
  switch (source) {
    case Source::fallback: return "default";
    case Source::site: return "site " + name;
    case Source::recipe: return "recipe " + name;
    case Source::variable: return name;
    case Source::flag: return "flag";
  }
  return "";
}

Settings::Settings(Schema schema, std::map<std::string, Setting> values, bool wants_help)
    : schema_(std::move(schema)), values_(std::move(values)), wants_help_(wants_help) {}

const Setting& Settings::setting(std::string_view key) const {
  const auto found = values_.find(std::string(key));
  if (found == values_.end())
    throw Error(Code::internal, core::text("no option ", key, " in this schema"));
  return found->second;
}

bool Settings::is_set(std::string_view key) const {
  return !std::holds_alternative<std::monostate>(setting(key).value);
}

template <class T>
const T& Settings::as(std::string_view key) const {
  const T* value = std::get_if<T>(&setting(key).value);
  if (value == nullptr)
    throw Error(Code::internal, core::text("option ", key, " is not set, or of another type"));
  return *value;
}

bool Settings::toggle(std::string_view key) const { return as<bool>(key); }
std::int64_t Settings::integer(std::string_view key) const { return as<std::int64_t>(key); }
double Settings::number(std::string_view key) const { return as<double>(key); }
const std::string& Settings::text(std::string_view key) const { return as<std::string>(key); }
const std::vector<std::int64_t>& Settings::integers(std::string_view key) const {
  return as<std::vector<std::int64_t>>(key);
}
const std::vector<double>& Settings::numbers(std::string_view key) const {
  return as<std::vector<double>>(key);
}
const std::vector<std::string>& Settings::texts(std::string_view key) const {
  return as<std::vector<std::string>>(key);
}

void Settings::settle(std::string_view key, Value value) {
  const auto found = values_.find(std::string(key));
  if (found == values_.end()) throw Error(Code::internal, core::text("no option ", key));
  found->second.value = std::move(value);
}

Settings resolve(const Schema& schema, const Sources& sources) {
  Values values;
  for (const Option& option : schema.options()) values[option.key] = {.value = option.fallback};
  if (asks_for_help(sources.arguments)) return {schema, std::move(values), /*wants_help=*/true};

  Values from_call;
  add_variables(from_call, schema, sources.variables);
  add_flags(from_call, schema, FlagReader(schema, sources.arguments).read());
  add_site(values, schema, sources);
  if (sources.base_recipe) add_file(values, schema, *sources.base_recipe, Source::recipe);
  if (const std::string recipe = recipe_name(schema, from_call); !recipe.empty()) {
    add_file(values, schema, recipe, Source::recipe);
  }
  for (auto& [key, setting] : from_call) values[key] = std::move(setting);
  return {schema, std::move(values), /*wants_help=*/false};
}

}  // namespace yoke::settings
