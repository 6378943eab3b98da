#include "yoke/launch/streams.hpp"

#include <cstdint>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::text;

constexpr std::int64_t kMostRanks = 1'000'000;

std::optional<Streams> streams_of(std::string_view number) {
  const auto value = core::parse_integer(number);
  if (!value || *value < 0 || *value > 3) return std::nullopt;
  return static_cast<Streams>(*value);
}

[[noreturn]] void refuse_streams(std::string_view value, const std::string& option) {
  throw Error(
      Code::invalid_argument, text(option, " '", value, "' names no streams"),
      "0 none, 1 standard output, 2 standard error, 3 both; for single local ranks 0:3,1:1");
}

[[noreturn]] void refuse_ranks(std::string_view value, const std::string& option) {
  throw Error(Code::invalid_argument, text(option, " '", value, "' is no list of ranks"),
              text("for example ", option, " 0,3,8-11"));
}

}  // namespace

bool StreamChoice::has(int local_rank, Streams stream) const {
  const auto own = by_local_rank.find(local_rank);
  const Streams chosen = own == by_local_rank.end() ? all : own->second;
  return (static_cast<unsigned>(chosen) & static_cast<unsigned>(stream)) != 0;
}

StreamChoice stream_choice(std::string_view value, const std::string& option) {
  StreamChoice choice;
  if (const auto all = streams_of(value)) {
    choice.all = *all;
    return choice;
  }
  for (const std::string& item : core::split(value, ',')) {
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) refuse_streams(value, option);
    const auto rank = core::parse_integer(item.substr(0, colon));
    const auto streams = streams_of(item.substr(colon + 1));
    if (!rank || *rank < 0 || *rank > kMostRanks || !streams) refuse_streams(value, option);
    choice.by_local_rank[static_cast<int>(*rank)] = *streams;
  }
  return choice;
}

std::set<int> rank_set(std::string_view value, const std::string& option) {
  std::set<int> ranks;
  for (const std::string& item : core::split(value, ',')) {
    const std::size_t dash = item.find('-');
    const auto low = core::parse_integer(item.substr(0, dash));
    const auto high = dash == std::string::npos ? low : core::parse_integer(item.substr(dash + 1));
    if (!low || !high || *low < 0 || *high < *low || *high > kMostRanks)
      refuse_ranks(value, option);
    for (std::int64_t rank = *low; rank <= *high; ++rank) ranks.insert(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace yoke::launch
