#include "yoke/device/visible.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::device {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Number {
  int value = -1;     // -1: there is none
  bool whole = true;  // false: something follows that CUDA ignores
};

/// The number at the beginning, as C's strtoul reads it.
Number leading_number(std::string_view entry) {
  const bool has_sign = !entry.empty() && (entry[0] == '+' || entry[0] == '-');
  const std::size_t begin = has_sign ? 1 : 0;
  std::size_t end = begin;
  constexpr int kBeyondAnyMachine = 1'000'000;
  int value = 0;
  while (end < entry.size() && is_digit(entry[end])) {
    value = std::min(kBeyondAnyMachine, value * 10 + (entry[end++] - '0'));
  }
  if (end == begin || entry[0] == '-') return {};
  return {.value = value, .whole = end == entry.size()};
}

std::string quoted(std::size_t place, std::string_view entry) {
  return text("entry ", place + 1, " (", entry, "): ");
}

void repeated(VisibleList& list, std::size_t place, std::string_view entry,
              const std::string& what) {
  list.indices.clear();
  list.ended_by = quoted(place, entry) + "repeated " + what + ", so CUDA shows no card at all";
}

/// A list of numbers. An index beyond the machine ends the list, yet a repetition after it still
/// empties it.
VisibleList read_numbers(const std::vector<std::string>& entries, int count) {
  VisibleList list;
  std::set<int> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view entry = core::trimmed(entries[i]);
    const Number number = leading_number(entry);
    if (number.value < 0) {
      if (list.ended_by.empty())
        list.ended_by = quoted(i, entry) + "not an index, so the list ends here";
      return list;
    }
    if (!seen.insert(number.value).second) {
      repeated(list, i, entry, text("index ", number.value));
      return list;
    }
    if (!number.whole) {
      list.warnings.push_back(quoted(i, entry) +
                              text("read as ", number.value, ", what follows is ignored"));
    }
    if (number.value >= count && list.ended_by.empty()) {
      list.ended_by = quoted(i, entry) + text("index ", number.value, ", only ", count, " GPUs");
    }
    if (list.ended_by.empty()) list.indices.push_back(number.value);
  }
  return list;
}

std::vector<int> cards_beginning_with(std::string_view entry,
                                      const std::vector<std::string>& uuids) {
  std::vector<int> found;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (uuids[i].starts_with(entry)) found.push_back(static_cast<int>(i));
  }
  return found;
}

[[noreturn]] void refuse_ambiguous(std::size_t place, std::string_view entry,
                                   const std::vector<int>& found,
                                   const std::vector<std::string>& uuids) {
  std::vector<std::string> names;
  for (const int i : found)
    names.push_back(text("card ", i, " is ", uuids[static_cast<std::size_t>(i)]));
  throw core::Error(core::Code::invalid_argument,
                    text(kVariable, ": ", quoted(place, entry), "ambiguous: ", core::joined(names)),
                    "write more of the UUID");
}

/// A list of UUIDs or of their beginnings.
VisibleList read_uuids(const std::vector<std::string>& entries, int count,
                       const std::vector<std::string>& uuids) {
  VisibleList list;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::string card(core::trimmed(entries[i]));
    const std::string entry = card;
    int index = -1;
    if (!entry.starts_with("GPU-")) {
      list.ended_by = quoted(i, entry) + "not a UUID as the first entry is, so the list ends here";
      return list;
    }
    if (!uuids.empty()) {
      const std::vector<int> found = cards_beginning_with(entry, uuids);
      if (found.size() > 1) refuse_ambiguous(i, entry, found, uuids);
      if (found.empty()) {
        list.ended_by = quoted(i, entry) + text("none of the ", count, " GPUs has this UUID");
        return list;
      }
      index = found[0];
      card = uuids[static_cast<std::size_t>(index)];
    }
    if (!seen.insert(card).second) {
      repeated(list, i, entry, "UUID");
      return list;
    }
    list.indices.push_back(index);
  }
  return list;
}

/// CUDA shows one MIG instance to a process, the first of the list.
VisibleList read_mig(const std::vector<std::string>& entries) {
  VisibleList list{.indices = {-1}};
  if (entries.size() > 1) {
    list.ended_by =
        quoted(1, core::trimmed(entries[1])) + "CUDA shows one MIG instance to a process";
  }
  return list;
}

bool is_card_node(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), is_digit);
}

int card_nodes(const fs::path& root) {
  int count = 0;
  std::error_code error;
  for (const auto& node : fs::directory_iterator(root / "dev", error)) {
    if (is_card_node(node.path().filename().string())) ++count;
  }
  return count;
}

}  // namespace

VisibleList read_visible_list(std::string_view value, int count,
                              const std::vector<std::string>& uuids) {
  const std::string_view whole = core::trimmed(value);
  if (whole.empty()) return {.ended_by = "set but empty"};
  const std::vector<std::string> entries = core::split(whole, ',');
  if (whole.starts_with("GPU-")) return read_uuids(entries, count, uuids);
  if (whole.starts_with("MIG-")) return read_mig(entries);
  return read_numbers(entries, count);
}

VisibleCards visible_cards(const core::EnvironmentMap& variables, const Nvml& nvml) {
  std::vector<Card> all;
  std::vector<std::string> uuids;
  for (int i = 0; i < nvml.count(); ++i) {
    all.push_back(nvml.card(i));
    uuids.push_back(all.back().uuid);
  }
  const auto variable = variables.find(kVariable);
  if (variable == variables.end()) return {.cards = std::move(all)};

  VisibleList list = read_visible_list(variable->second, static_cast<int>(all.size()), uuids);
  VisibleCards out{.ended_by = std::move(list.ended_by), .warnings = std::move(list.warnings)};
  for (const int index : list.indices) {
    if (index >= 0) {
      out.cards.push_back(all[static_cast<std::size_t>(index)]);
    } else {
      const std::vector<std::string> entries = core::split(variable->second, ',');
      out.cards.push_back(
          {.index = -1, .uuid = std::string(core::trimmed(entries[0])), .name = "MIG instance"});
    }
  }
  return out;
}

int visible_gpu_count(const core::EnvironmentMap& variables, const fs::path& root,
                      const std::function<NvmlOpened()>& open) {
  int count = card_nodes(root);
  std::error_code error;
  if (count == 0 && fs::exists(root / "proc/driver/nvidia/version", error)) {
    // Without a display server or persistence daemon the driver's nodes appear at its first use,
    // which NVML is.
    if (const NvmlOpened opened = open(); opened.nvml) count = opened.nvml->count();
  }
  const auto variable = variables.find(kVariable);
  if (variable == variables.end() || count == 0) return count;
  const VisibleList list = read_visible_list(variable->second, count);
  return std::min(count, static_cast<int>(list.indices.size()));
}

}  // namespace yoke::device
