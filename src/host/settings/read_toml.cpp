// The only file that includes toml++ (docs/decisions/0004-tomlplusplus.md).
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include "read_toml.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <toml++/toml.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::settings {
namespace {

namespace fs = std::filesystem;
using core::Code;
using core::Error;
using core::text;

/// The files on the way from the one that was named to the one that is read.
using Chain = std::vector<fs::path>;

std::optional<Scalar> scalar_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return Scalar(value->get());
  if (const auto* value = node.as_integer()) return Scalar(value->get());
  if (const auto* value = node.as_floating_point()) return Scalar(value->get());
  if (const auto* value = node.as_string()) return Scalar(value->get());
  return std::nullopt;
}

std::string shown(const TomlEntry& entry) {
  std::vector<std::string> parts;
  for (const Scalar& scalar : entry.scalars) parts.push_back(toml_text(scalar));
  return entry.is_array ? "[" + core::joined(parts) + "]" : core::joined(parts);
}

[[noreturn]] void refuse(const std::string& place, const std::string& why,
                         const std::string& hint) {
  throw Error(Code::invalid_argument, place + ": " + why, hint);
}

/// What TOML calls the node: "array", "local date".
std::string kind(const toml::node& node) { return text(node.type()); }

TomlEntry entry_of(const toml::key& key, const toml::node& node, const fs::path& file,
                   const std::string& what) {
  TomlEntry entry;
  entry.key = key.str();
  entry.file_line = text(file.string(), ":", key.source().begin.line);
  const std::string place = text(what, " ", entry.file_line, ": ", entry.key);
  if (node.is_table())
    refuse(place, "a table", "write the keys of [" + entry.key + "] at the top: a recipe is flat");
  const auto add = [&](const toml::node& item) {
    const std::optional<Scalar> scalar = scalar_of(item);
    if (!scalar)
      refuse(place, "a value of a strange kind: " + kind(item),
             "use a text, a number, true or false, or a list");
    entry.scalars.push_back(*scalar);
  };
  const toml::array* array = node.as_array();
  entry.is_array = array != nullptr;
  if (array == nullptr) {
    add(node);
  } else {
    for (const toml::node& item : *array) add(item);
  }
  entry.shown = shown(entry);
  return entry;
}

toml::table parse(const fs::path& file, const std::string& what) {
  const std::string words = core::read_file(file);
  try {
    return toml::parse(words, file.string());
  } catch (const toml::parse_error& error) {
    refuse(text(what, " ", file.string(), ":", error.source().begin.line),
           std::string(error.description()), "see https://toml.io for the form of a recipe");
  }
}

void refuse_circle(const Chain& chain, const fs::path& file, const std::string& what) {
  const auto same = [&](const fs::path& other) {
    return fs::weakly_canonical(other) == fs::weakly_canonical(file);
  };
  if (std::none_of(chain.begin(), chain.end(), same)) return;
  std::vector<std::string> names;
  for (const fs::path& step : chain) names.push_back(step.string());
  names.push_back(file.string());
  refuse(what + " " + file.string(), "extends itself: " + core::joined(names, " -> "),
         "take one `extends` out");
}

void read_into(std::vector<TomlEntry>& entries, const fs::path& file, const std::string& what,
               Chain chain) {
  refuse_circle(chain, file, what);
  chain.push_back(file);
  const toml::table table = parse(file, what);
  std::vector<TomlEntry> own;
  for (const auto& [key, node] : table) own.push_back(entry_of(key, node, file, what));
  for (const TomlEntry& entry : own) {
    if (entry.key != "extends") continue;
    const std::string* base =
        entry.is_array ? nullptr : std::get_if<std::string>(&entry.scalars.front());
    if (base == nullptr)
      refuse(text(what, " ", entry.file_line, ": extends"), "not a text",
             "write extends = \"base.toml\"");
    read_into(entries, (file.parent_path() / *base).lexically_normal(), what, chain);
  }
  std::erase_if(own, [](const TomlEntry& entry) { return entry.key == "extends"; });
  entries.insert(entries.end(), own.begin(), own.end());
}

}  // namespace

std::vector<TomlEntry> read_toml(const fs::path& file, const std::string& what) {
  std::vector<TomlEntry> entries;
  read_into(entries, file, what, {});
  return entries;
}

}  // namespace yoke::settings
