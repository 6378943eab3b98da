#include <array>
#include <utility>

#include "yoke/core/text.hpp"
#include "yoke/stack/version.hpp"

namespace yoke::stack {
namespace {

using Operator = Specifier::Operator;

struct Spelling {
  std::string_view word;
  Operator compare;
};

// Longer words before the words that they begin with.
constexpr std::array kSpellings{
    Spelling{"===", Operator::literal},   Spelling{"==", Operator::equal},
    Spelling{"~=", Operator::compatible}, Spelling{"!=", Operator::unequal},
    Spelling{"<=", Operator::at_most},    Spelling{">=", Operator::at_least},
    Spelling{"<", Operator::less},        Spelling{">", Operator::more},
};

bool may_end_with_star(Operator compare) {
  return compare == Operator::equal || compare == Operator::unequal;
}

std::optional<Specifier> parse_one(std::string_view text) {
  text = core::trimmed(text);
  for (const Spelling& spelling : kSpellings) {
    if (!text.starts_with(spelling.word)) continue;
    Specifier out{.compare = spelling.compare, .text = std::string(text)};
    std::string_view rest = core::trimmed(text.substr(spelling.word.size()));
    if (out.compare == Operator::literal) return rest.empty() ? std::nullopt : std::optional(out);
    if (may_end_with_star(out.compare) && rest.ends_with(".*")) {
      out.prefix = true;
      rest.remove_suffix(2);
    }
    out.version = Version::parse(rest);
    const bool too_short =
        out.compare == Operator::compatible && out.version && out.version->release().size() < 2;
    return out.version && !too_short ? std::optional(std::move(out)) : std::nullopt;
  }
  return std::nullopt;
}

bool equal(const Version& candidate, const Version& wanted, bool prefix) {
  if (prefix) return candidate.begins_with(wanted);
  return wanted.local().empty() ? candidate.without_local() == wanted : candidate == wanted;
}

/// ~=2.9.1 is >=2.9.1 and ==2.9.*.
bool compatible(const Version& candidate, const Version& wanted) {
  const auto series = Version::parse(wanted.series(wanted.release().size() - 1));
  return candidate >= wanted && series && candidate.begins_with(*series);
}

/// Below a release, its own pre-releases are not meant; above it, neither are its own later builds.
bool less(const Version& candidate, const Version& wanted) {
  if (candidate >= wanted) return false;
  return wanted.is_prerelease() || !candidate.is_prerelease() || candidate.base() != wanted.base();
}

bool more(const Version& candidate, const Version& wanted) {
  if (candidate <= wanted) return false;
  return wanted.is_post() || !candidate.is_post() || candidate.base() != wanted.base();
}

}  // namespace

bool Specifier::allows(const Version& candidate) const {
  if (!version) return candidate.text() == core::trimmed(std::string_view(text).substr(3));
  const Version bare = candidate.without_local();
  switch (compare) {
    case Operator::equal: return equal(candidate, *version, prefix);
    case Operator::unequal: return !equal(candidate, *version, prefix);
    case Operator::at_most: return bare <= *version;
    case Operator::at_least: return bare >= *version;
    case Operator::less: return less(bare, *version);
    case Operator::more: return more(bare, *version);
    case Operator::compatible: return compatible(bare, *version);
    case Operator::literal: return false;
  }
  return false;
}

std::optional<Specifiers> Specifiers::parse(std::string_view text) {
  Specifiers out;
  if (core::trimmed(text).empty()) return out;
  for (const std::string& part : core::split(text, ',')) {
    auto one = parse_one(part);
    if (!one) return std::nullopt;
    out.items_.push_back(std::move(*one));
  }
  return out;
}

std::optional<Specifiers> Specifiers::parse_loosely(std::string_view text) {
  if (auto strict = parse(text)) return strict;
  const auto version = Version::parse(text);
  if (!version) return std::nullopt;
  const bool whole = version->release().size() > 2 || !version->local().empty();
  return parse("==" + version->normal() + (whole ? "" : ".*"));
}

bool Specifiers::allow(const Version& candidate) const {
  for (const Specifier& item : items_) {
    if (!item.allows(candidate)) return false;
  }
  return true;
}

std::string Specifiers::text() const {
  std::vector<std::string> texts;
  for (const Specifier& item : items_) texts.push_back(item.text);
  return core::joined(texts, ",");
}

std::optional<Version> Specifiers::exact() const {
  if (items_.size() != 1 || items_[0].compare != Operator::equal || items_[0].prefix) return {};
  return items_[0].version;
}

}  // namespace yoke::stack
