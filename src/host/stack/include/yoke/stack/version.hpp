#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::stack {

/// A version as Python's packages write it (PEP 440): 2.9.0, 2.10.0rc1, 2.9.0+cu118, 1!2.0.post1.
/// Driver versions (570.124.06) are read the same way.
///
///   *Version::parse("2.9.0+cu118") > *Version::parse("2.9.0rc2")  // true
///
/// Order: a0 < b0 < rc0 < the release < post0; dev before all of them; a local part after none.
///   Trailing zeros do not count: 2.9 equals 2.9.0.
/// Errors: parse() gives nothing for a text that is no version; a number is at most 18 digits long.
class Version {
 public:
  [[nodiscard]] static std::optional<Version> parse(std::string_view text);

  [[nodiscard]] std::strong_ordering operator<=>(const Version& other) const;
  [[nodiscard]] bool operator==(const Version& other) const { return (*this <=> other) == 0; }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }  ///< as it was written
  [[nodiscard]] std::string normal()
      const;  ///< the one spelling of equal texts: 2.0rc1, not v2.0-c1
  [[nodiscard]] const std::vector<std::int64_t>& release() const noexcept { return release_; }
  [[nodiscard]] const std::string& local() const noexcept {
    return local_;
  }  ///< "cu118"; empty: none
  [[nodiscard]] bool is_prerelease() const noexcept { return pre_.has_value() || dev_.has_value(); }
  [[nodiscard]] bool is_post() const noexcept { return post_.has_value(); }

  [[nodiscard]] Version without_local() const;
  [[nodiscard]] Version base() const;  ///< epoch and release alone

  /// The first `parts` numbers of the release: series(2) of 2.9.1+cu126 is "2.9".
  [[nodiscard]] std::string series(std::size_t parts) const;

  /// Whether the release begins with that of `prefix`, of the same epoch.
  [[nodiscard]] bool begins_with(const Version& prefix) const;

 private:
  friend class VersionReader;

  struct Pre {
    char kind = 'a';  // a, b, r: their order is that of the letters
    std::int64_t number = 0;
    auto operator<=>(const Pre&) const = default;
  };

  std::string text_;
  std::int64_t epoch_ = 0;
  std::vector<std::int64_t> release_;
  std::optional<Pre> pre_;
  std::optional<std::int64_t> post_;
  std::optional<std::int64_t> dev_;
  std::string local_;
};

/// One condition: >=2.8, ==2.9.*, ~=2.9.1.
struct Specifier {
  enum class Operator { equal, unequal, at_most, at_least, less, more, compatible, literal };

  Operator compare = Operator::equal;
  std::optional<Version> version{};  ///< nothing only for a literal (===)
  bool prefix = false;               ///< ends with .*
  std::string text{};                ///< as it was written

  [[nodiscard]] bool allows(const Version& candidate) const;
};

/// Conditions that hold together: ">=2.8,<2.10".
///
/// A condition without a local part takes a candidate with any: ==2.9.0 allows 2.9.0+cu126.
/// Errors: parse() gives nothing for a text that is no list of conditions.
class Specifiers {
 public:
  [[nodiscard]] static std::optional<Specifiers> parse(std::string_view text);

  /// All versions whose release begins with the given one, unless the text says more: what a person
  /// means by "2.9". A text with an operator is read as by parse().
  [[nodiscard]] static std::optional<Specifiers> parse_loosely(std::string_view text);

  [[nodiscard]] bool allow(const Version& candidate) const;
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const std::vector<Specifier>& items() const noexcept { return items_; }

  /// The version that a single == names, if there is one.
  [[nodiscard]] std::optional<Version> exact() const;

 private:
  std::vector<Specifier> items_;
};

}  // namespace yoke::stack
