#include "yoke/stack/version.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_separator(char c) { return c == '.' || c == '-' || c == '_'; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

constexpr std::size_t kMostDigits = 18;  // fit into 64 bits

}  // namespace

/// Reads a lower-case text from left to right.
class VersionReader {
 public:
  explicit VersionReader(std::string_view text) : rest_(text) {}

  std::optional<Version> read() {
    Version version;
    (void)take("v");
    if (!read_epoch_and_release(version) || !read_pre(version) || !read_post(version) ||
        !read_dev(version) || !read_local(version) || !rest_.empty()) {
      return std::nullopt;
    }
    return version;
  }

 private:
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::int64_t> number() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_digit);
    const auto digits = static_cast<std::size_t>(end - rest_.begin());
    if (digits == 0 || digits > kMostDigits) return std::nullopt;
    const auto value = core::parse_integer(rest_.substr(0, digits));
    rest_.remove_prefix(digits);
    return value;
  }

  /// The number behind a word such as rc, which may stand apart (rc.1) or be absent (0).
  std::int64_t number_or_zero() {
    const std::string_view before = rest_;
    if (!rest_.empty() && is_separator(rest_[0])) rest_.remove_prefix(1);
    if (const auto value = number()) return *value;
    rest_ = before;
    return 0;
  }

  bool read_epoch_and_release(Version& version) {
    auto first = number();
    if (!first) return false;
    if (take("!")) {
      version.epoch_ = *first;
      first = number();
      if (!first) return false;
    }
    version.release_.push_back(*first);
    while (rest_.size() > 1 && rest_[0] == '.' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      const auto next = number();
      if (!next) return false;
      version.release_.push_back(*next);
    }
    return true;
  }

  /// Takes one of `words`, with or without a separator before it; else leaves the text as it is.
  template <std::size_t kCount>
  std::optional<std::size_t> word(const std::array<std::string_view, kCount>& words) {
    const std::string_view before = rest_;
    if (!rest_.empty() && is_separator(rest_[0])) rest_.remove_prefix(1);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (take(words[i])) return i;
    }
    rest_ = before;
    return std::nullopt;
  }

  bool read_pre(Version& version) {
    constexpr std::array<std::string_view, 8> kWords{"alpha", "a",       "beta", "b",
                                                     "rc",    "preview", "pre",  "c"};
    constexpr std::string_view kKinds = "aabbrrrr";
    if (const auto found = word(kWords)) {
      version.pre_ = Version::Pre{.kind = kKinds[*found], .number = number_or_zero()};
    }
    return true;
  }

  bool read_post(Version& version) {
    if (rest_.size() > 1 && rest_[0] == '-' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      version.post_ = number();
      return version.post_.has_value();
    }
    constexpr std::array<std::string_view, 3> kWords{"post", "rev", "r"};
    if (word(kWords)) version.post_ = number_or_zero();
    return true;
  }

  bool read_dev(Version& version) {
    constexpr std::array<std::string_view, 1> kWords{"dev"};
    if (word(kWords)) version.dev_ = number_or_zero();
    return true;
  }

  bool read_local(Version& version) {
    if (!take("+")) return true;
    bool may_end = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      const char c = rest_[0];
      if (is_separator(c) ? !may_end : !is_digit(c) && !is_letter(c)) return false;
      may_end = !is_separator(c);
      version.local_ += is_separator(c) ? '.' : c;
    }
    return may_end;
  }

  std::string_view rest_;
};

std::optional<Version> Version::parse(std::string_view text) {
  const std::string_view written = core::trimmed(text);
  const std::string lower = lowered(written);
  auto version = VersionReader(lower).read();
  if (version) version->text_ = std::string(written);
  return version;
}

namespace {

std::int64_t part(const std::vector<std::int64_t>& release, std::size_t place) {
  return place < release.size() ? release[place] : 0;
}

std::strong_ordering compare_releases(const std::vector<std::int64_t>& a,
                                      const std::vector<std::int64_t>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (const auto order = part(a, i) <=> part(b, i); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

/// Numbers of a local part come after words, and count as numbers.
std::strong_ordering compare_local(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& text) {
    return text.empty() ? std::vector<std::string>{} : core::split(text, '.');
  };
  const std::vector<std::string> left = split(a);
  const std::vector<std::string> right = split(b);
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const auto x = core::parse_integer(left[i]);
    const auto y = core::parse_integer(right[i]);
    const auto order = x && y   ? *x <=> *y
                       : x || y ? x.has_value() <=> y.has_value()
                                : left[i].compare(right[i]) <=> 0;
    if (order != 0) return order;
  }
  return left.size() <=> right.size();
}

}  // namespace

std::strong_ordering Version::operator<=>(const Version& other) const {
  if (const auto order = epoch_ <=> other.epoch_; order != 0) return order;
  if (const auto order = compare_releases(release_, other.release_); order != 0) return order;
  // A dev version of the release itself comes before its first alpha.
  const auto stage = [](const Version& version) {
    if (version.pre_) return 1;
    return version.dev_ && !version.post_ ? 0 : 2;
  };
  if (const auto order = stage(*this) <=> stage(other); order != 0) return order;
  if (const auto order = pre_ <=> other.pre_; order != 0) return order;
  if (const auto order = post_ <=> other.post_; order != 0) return order;
  if (dev_ != other.dev_) {
    if (dev_ && other.dev_) return *dev_ <=> *other.dev_;
    return dev_ ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  return compare_local(local_, other.local_);
}

std::string Version::normal() const {
  std::string out = epoch_ == 0 ? "" : std::to_string(epoch_) + "!";
  out += series(release_.size());
  if (pre_)
    out += (pre_->kind == 'r' ? "rc" : std::string(1, pre_->kind)) + std::to_string(pre_->number);
  if (post_) out += ".post" + std::to_string(*post_);
  if (dev_) out += ".dev" + std::to_string(*dev_);
  return local_.empty() ? out : out + "+" + local_;
}

Version Version::without_local() const {
  Version copy = *this;
  copy.local_.clear();
  copy.text_ = copy.normal();
  return copy;
}

Version Version::base() const {
  Version copy;
  copy.epoch_ = epoch_;
  copy.release_ = release_;
  copy.text_ = copy.normal();
  return copy;
}

std::string Version::series(std::size_t parts) const {
  std::string out;
  for (std::size_t i = 0; i < parts; ++i) {
    out += (i == 0 ? "" : ".") + std::to_string(part(release_, i));
  }
  return out;
}

bool Version::begins_with(const Version& prefix) const {
  if (epoch_ != prefix.epoch_) return false;
  for (std::size_t i = 0; i < prefix.release_.size(); ++i) {
    if (part(release_, i) != prefix.release_[i]) return false;
  }
  return true;
}

}  // namespace yoke::stack
