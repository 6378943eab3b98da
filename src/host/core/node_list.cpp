#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

// More hosts than any cluster has: a longer range is a slip, not a job.
constexpr std::int64_t kMostHosts = 100'000;

[[noreturn]] void refuse(std::string_view list, std::string_view why) {
  throw Error(Code::invalid_argument, text("node list '", list, "': ", why),
              "give it as Slurm writes it, for example node[01-04,7]");
}

/// Items of `list` between commas that stand outside brackets.
std::vector<std::string_view> items(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') {
      if (inside) refuse(list, "a bracket opens inside another");
      inside = true;
    } else if (list[i] == ']') {
      if (!inside) refuse(list, "a bracket closes that was not opened");
      inside = false;
    } else if (list[i] == ',' && !inside) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (inside) refuse(list, "a bracket does not close");
  parts.push_back(list.substr(begin));
  return parts;
}

std::string padded(std::int64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

/// The numbers of one range, as text: "08-10" is 08, 09, 10.
std::vector<std::string> numbers(std::string_view range, std::string_view list) {
  const std::size_t dash = range.find('-');
  const std::string_view low_text = range.substr(0, dash);
  const auto low = parse_integer(low_text);
  const auto high = dash == std::string_view::npos ? low : parse_integer(range.substr(dash + 1));
  if (!low || !high || *low < 0) refuse(list, text("'", range, "' is no range of numbers"));
  if (*high < *low) refuse(list, text("the range '", range, "' runs backwards"));
  if (*high - *low >= kMostHosts)
    refuse(list, text("the range '", range, "' is longer than ", kMostHosts));
  std::vector<std::string> out;
  for (std::int64_t n = *low; n <= *high; ++n) out.push_back(padded(n, low_text.size()));
  return out;
}

/// One item with any number of brackets: "r[1-2]n[0-1]" is r1n0, r1n1, r2n0, r2n1.
std::vector<std::string> expand_item(std::string_view item, std::string_view list) {
  std::vector<std::string> names{""};
  while (!item.empty()) {
    const std::size_t open = item.find('[');
    for (std::string& name : names) name += item.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = item.find(']', open);
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& range : split(item.substr(open + 1, close - open - 1), ',')) {
        for (const std::string& number : numbers(range, list)) longer.push_back(name + number);
        if (longer.size() > static_cast<std::size_t>(kMostHosts))
          refuse(list, "it names more hosts than a cluster has");
      }
    }
    names = std::move(longer);
    item.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view item : items(list)) {
    if (item.empty()) refuse(list, "an empty name");
    for (std::string& host : expand_item(item, list)) hosts.push_back(std::move(host));
  }
  return hosts;
}

int tasks_of_node(std::string_view list, int index) {
  std::int64_t first = 0;
  for (const std::string& item : split(list, ',')) {
    const std::size_t open = item.find("(x");
    const auto tasks = parse_integer(std::string_view(item).substr(0, open));
    std::optional<std::int64_t> times = 1;
    if (open != std::string::npos) {
      times = item.back() == ')'
                  ? parse_integer(std::string_view(item).substr(open + 2, item.size() - open - 3))
                  : std::nullopt;
    }
    if (!tasks || !times || *tasks < 1 || *times < 1 || *tasks > kMostHosts) {
      throw Error(Code::invalid_argument,
                  text("task list '", list, "': '", item, "' is not of the form 4 or 4(x2)"));
    }
    if (index < first + *times) return static_cast<int>(*tasks);
    first += *times;
  }
  throw Error(Code::invalid_argument,
              text("task list '", list, "': it has ", first, " nodes and no node ", index));
}

}  // namespace yoke::core
