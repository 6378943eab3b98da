#include "yoke/cluster/hosts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using core::text;

constexpr std::int64_t kMostSlots = 4096;

std::optional<int> count_of(std::string_view number) {
  const auto value = core::parse_integer(number);
  if (!value || *value < 1 || *value > kMostSlots) return std::nullopt;
  return static_cast<int>(*value);
}

[[noreturn]] void refuse_line(const std::string& file, std::size_t number, std::string_view line,
                              std::string_view why) {
  throw Error(Code::invalid_argument, text(file, ", line ", number, ": '", line, "': ", why),
              "a line is HOST, or HOST slots=N");
}

[[noreturn]] void refuse_include(const std::string& include, const std::string& why) {
  throw Error(Code::invalid_argument, text("--include '", include, "': ", why),
              "for example worker-1:0,2@worker-2");
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line) {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

}  // namespace

std::vector<Host> parse_host_file(std::string_view whole, const std::string& name) {
  std::vector<Host> hosts;
  std::size_t number = 0;
  for (const std::string& full : core::split(whole, '\n')) {
    ++number;
    const std::string_view line = core::trimmed(std::string_view(full).substr(0, full.find('#')));
    if (line.empty()) continue;
    const std::vector<std::string> words = words_of(line);
    Host host{.name = words[0]};
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool slots = words[i].starts_with("slots=");
      if (!slots && !words[i].starts_with("max_slots="))
        refuse_line(name, number, line, text("'", words[i], "' is not known"));
      const auto count = count_of(std::string_view(words[i]).substr(words[i].find('=') + 1));
      if (!count) refuse_line(name, number, line, text("'", words[i], "' is no number of ranks"));
      if (slots) host.slots = count;
    }
    const bool twice = std::any_of(hosts.begin(), hosts.end(),
                                   [&](const Host& other) { return other.name == host.name; });
    if (twice) refuse_line(name, number, line, text(host.name, " is there twice"));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty())
    throw Error(Code::invalid_argument, text(name, " names no host"), "a line is HOST slots=N");
  return hosts;
}

std::vector<Host> parse_host_list(const std::string& list) {
  std::vector<Host> hosts;
  // A colon is not part of Slurm's form, so its part comes first.
  for (const std::string& item : core::expand_node_list(list)) {
    const std::size_t colon = item.find(':');
    Host host{.name = item.substr(0, colon)};
    if (colon != std::string::npos) {
      host.slots = count_of(item.substr(colon + 1));
      if (!host.slots) {
        throw Error(Code::invalid_argument, text("--hosts '", list, "': '", item, "' has no count"),
                    "for example --hosts a:4,b:4");
      }
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::vector<Host> included(const std::vector<Host>& hosts, const std::string& include) {
  if (include.empty()) return hosts;
  std::vector<Host> out;
  for (const std::string& item : core::split(include, '@')) {
    const std::size_t colon = item.find(':');
    const std::string name = item.substr(0, colon);
    const auto found = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const Host& host) { return host.name == name; });
    if (found == hosts.end()) refuse_include(include, text("no host '", name, "' in the list"));
    Host host = *found;
    if (colon != std::string::npos) {
      for (const std::string& slot : core::split(item.substr(colon + 1), ',')) {
        const auto number = core::parse_integer(slot);
        if (!number || *number < 0 || (host.slots && *number >= *host.slots)) {
          refuse_include(include, text("host ", name, " has no slot '", slot, "'",
                                       host.slots ? text(" (slots=", *host.slots, ")") : ""));
        }
        host.devices.push_back(static_cast<int>(*number));
      }
      host.slots = static_cast<int>(host.devices.size());
    }
    out.push_back(std::move(host));
  }
  return out;
}

std::vector<Host> chosen_hosts(const HostOptions& options) {
  const std::vector<Host> hosts =
      options.file.empty() ? parse_host_list(options.list)
                           : parse_host_file(core::read_file(options.file), options.file);
  return included(hosts, options.include);
}

std::string visible_for_slots(const std::vector<int>& slots, const std::string& visible,
                              const std::string& host) {
  const std::vector<std::string> cards =
      visible.empty() ? std::vector<std::string>{} : core::split(visible, ',');
  std::vector<std::string> out;
  for (const int slot : slots) {
    const auto index = static_cast<std::size_t>(slot);
    if (!cards.empty() && index >= cards.size()) {
      throw Error(Code::invalid_argument,
                  text("host ", host, " shows ", cards.size(),
                       " cards (CUDA_VISIBLE_DEVICES=", visible, ") and has no slot ", slot),
                  "slots count the visible cards from 0");
    }
    out.push_back(cards.empty() ? std::to_string(slot) : std::string(core::trimmed(cards[index])));
  }
  return core::joined(out, ",");
}

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace yoke::cluster
