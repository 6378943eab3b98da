#include "sample_groups.hpp"

#include <algorithm>
#include <utility>

#include "image_suffix.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {

std::optional<MemberName> split_member_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  std::string suffix(name.substr(dot + 1));
  std::ranges::transform(suffix, suffix.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return MemberName{name.substr(0, dot), std::move(suffix)};
}

bool SampleGroups::is_label(std::string_view name) {
  const auto split = split_member_name(name);
  return split && split->suffix == "cls";
}

void SampleGroups::fail(std::string_view name, const std::string& what) const {
  throw Error(Code::corrupt_data, core::text("read ", archive_, ": member \"", name, "\": ", what));
}

void SampleGroups::add(std::string_view name, std::uint64_t offset, std::uint64_t size,
                       std::string_view label) {
  const auto member = split_member_name(name);
  if (!member) return;
  if (!open_ || open_->key != member->key) begin(member->key, name);
  if (std::ranges::find(suffixes_, member->suffix) != suffixes_.end()) {
    fail(name, "it stands twice in its sample");
  }
  suffixes_.push_back(member->suffix);
  if (member->suffix == "cls") {
    const auto value = core::parse_integer(core::trimmed(label));
    if (!value || *value < 0) fail(name, core::text("\"", label.substr(0, 20), "\" is no label"));
    open_->label = *value;
  } else if (!has_image_ && is_image_suffix(member->suffix)) {
    open_->offset = offset;
    open_->size = size;
    has_image_ = true;
  }
}

void SampleGroups::begin(std::string_view key, std::string_view name) {
  finish();
  if (ended_.contains(std::string(key))) {
    fail(name,
         core::text("key ", key, " was already finished; members of a sample must be adjacent"));
  }
  open_ = SampleEntry{.key = std::string(key)};
}

void SampleGroups::finish() {
  if (!open_) return;
  if (!has_image_) {
    throw Error(Code::unsupported,
                core::text("read ", archive_, ": sample \"", open_->key, "\" has no image (",
                           core::joined(suffixes_), ")"),
                "images have the suffix jpg, jpeg, png or webp");
  }
  ended_.insert(open_->key);
  samples_.push_back(*std::exchange(open_, std::nullopt));
  suffixes_.clear();
  has_image_ = false;
}

bool SampleGroups::finish_damaged(std::string_view name) {
  const auto cut = split_member_name(name);
  if (cut && open_ && open_->key != cut->key) {
    finish();
    return true;  // that of the cut member
  }
  const bool begun = open_.has_value() || cut.has_value();
  open_.reset();
  suffixes_.clear();
  has_image_ = false;
  return begun;
}

}  // namespace yoke::feed
