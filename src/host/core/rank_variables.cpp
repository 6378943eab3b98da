#include "rank_variables.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {

void refuse_variables(std::string message, std::string hint) {
  throw Error(Code::invalid_argument, "environment: " + std::move(message), std::move(hint));
}

std::optional<std::string> Variables::text_of(const std::string& name) const {
  const auto found = map_.find(name);
  if (found == map_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<int> Variables::number(const std::string& name) const {
  const auto value = text_of(name);
  if (!value) return std::nullopt;
  const auto parsed = parse_integer(*value);
  if (!parsed || *parsed < 0 || *parsed > std::numeric_limits<int>::max()) {
    refuse_variables(quote(name) + " is not a count", "unset it, or give a whole number from 0");
  }
  return static_cast<int>(*parsed);
}

std::optional<int> Variables::first_number(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (const auto value = number(name)) return value;
  }
  return std::nullopt;
}

std::string Variables::first_text(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (const auto value = text_of(name)) return *value;
  }
  return {};
}

std::string Variables::quote(const std::string& name) const {
  const auto value = text_of(name);
  return value ? name + "=" + *value : name + " (not set)";
}

std::string Variables::quote_all(std::initializer_list<const char*> names) const {
  std::vector<std::string> quoted;
  for (const char* name : names) quoted.push_back(quote(name));
  return joined(quoted);
}

void check_ranges(const Variables& variables, const RankFacts& facts, const Names& names) {
  const auto clash = [&](const char* small, const char* large, const char* why) {
    refuse_variables(text(variables.quote_all({small, large}), ": ", why),
                     text("mend or unset ", small, " and ", large, "; the launcher (",
                          facts.launcher, ") sets both"));
  };
  if (facts.world_size < 1)
    refuse_variables(variables.quote(names.world_size) + ": a job has one rank at least",
                     "unset it");
  if (facts.rank >= facts.world_size)
    clash(names.rank, names.world_size, "the rank is not below the number of ranks");
  if (facts.local_rank >= facts.local_world_size) {
    clash(names.local_rank, names.local_world_size,
          "the local rank is not below the number of local ranks");
  }
  if (facts.local_world_size > facts.world_size) {
    clash(names.local_world_size, names.world_size,
          "more ranks on one machine than there are in all");
  }
}

void read_meeting_point(const Variables& variables, RankFacts& facts) {
  if (const auto address = variables.text_of("MASTER_ADDR")) facts.master_address = *address;
  if (const auto port = variables.number("MASTER_PORT")) {
    if (*port < 1 || *port > 65'535)
      refuse_variables(variables.quote("MASTER_PORT") + " is not a port", "give 1 to 65535");
    facts.master_port = *port;
  }
}

void check_meeting_point(const Variables& variables, const RankFacts& facts, const char* who,
                         const char* hint) {
  if (facts.world_size == 1 || (!facts.master_address.empty() && facts.master_port != 0)) return;
  refuse_variables(text(variables.quote_all({"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}), ": the ",
                        who, " have no place to meet"),
                   hint);
}

}  // namespace yoke::core
