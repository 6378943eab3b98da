#include "yoke/doctor/explain.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "meanings.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether `part` stands in `text`; a number at an end of it must be whole ("error 80" is not in
/// "error 802").
bool holds(std::string_view text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    const bool cut = is_digit(part.back()) && end < text.size() && is_digit(text[end]);
    if (!cut) return true;
  }
  return false;
}

/// The length of the longest mark that fits; 0: none.
std::size_t fit(const KnownText& known, std::string_view text) {
  std::size_t longest = 0;
  for (const std::string_view mark : known.marks) {
    const std::size_t both = mark.find(" & ");
    const bool fits = both == std::string_view::npos
                          ? holds(text, mark)
                          : holds(text, mark.substr(0, both)) && holds(text, mark.substr(both + 3));
    if (fits) longest = std::max(longest, mark.size());
  }
  return longest;
}

std::vector<KnownText> all_texts() {
  std::vector<KnownText> out = driver_texts();
  for (KnownText& known : program_texts()) out.push_back(std::move(known));
  return out;
}

Meaning meaning_of(const KnownText& known, const Machine& machine) {
  Meaning out{.id = std::string(known.id),
              .reason = std::string(known.reason),
              .change = std::string(known.change)};
  if (known.look == nullptr) return out;
  try {
    known.look(machine, out);
  } catch (const Error& error) {
    out.seen = "could not look: " + error.message();
  }
  return out;
}

}  // namespace

std::vector<Meaning> explain_text(std::string_view text, const Machine& machine) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<std::pair<std::size_t, KnownText>> found;
  for (KnownText& known : all_texts()) {
    if (const std::size_t length = fit(known, lower)) found.emplace_back(length, std::move(known));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Meaning> out;
  for (const auto& [length, known] : found) out.push_back(meaning_of(known, machine));
  return out;
}

std::vector<std::string> known_meanings() {
  std::vector<std::string> out;
  for (const KnownText& known : all_texts()) out.emplace_back(known.id);
  return out;
}

}  // namespace yoke::doctor
