#include "bench_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::Json;

constexpr double kLaunchBound = 0.85;  // of the time; a card that is busy less waits for the host
constexpr double kScalesWell = 0.95;   // efficiency that needs no line
constexpr double kMebi = 1 << 20;

std::string formatted(const char* format, double value) {
  std::array<char, 48> out{};
  std::snprintf(out.data(), out.size(), format, value);
  return out.data();
}

template <class Number>
std::string shown(const std::optional<Number>& value, const char* format, double unit = 1) {
  return value ? formatted(format, static_cast<double>(*value) / unit) : "-";
}

template <class Number>
Json or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string name_of(const BenchRow& row) { return row.way + (row.captured ? ", captured" : ""); }

}  // namespace

const BenchRow* BenchTable::best(std::int64_t batch, int devices) const {
  const BenchRow* found = nullptr;
  for (const BenchRow& row : rows_) {
    const bool fits =
        !row.rival && row.trouble.empty() && row.batch == batch && row.devices == devices;
    const bool single = devices > 1 || row.way == "single";
    if (fits && single && (found == nullptr || row.images_per_second > found->images_per_second))
      found = &row;
  }
  return found;
}

const BenchRow* BenchTable::rivals_single(std::int64_t batch) const {
  const auto found = std::ranges::find_if(rows_, [&](const BenchRow& row) {
    return row.way == "PyTorch eager" && row.trouble.empty() && row.batch == batch;
  });
  return found == rows_.end() ? nullptr : &*found;
}

std::optional<double> BenchTable::speed_up(const BenchRow& row) const {
  const BenchRow* single = row.rival ? rivals_single(row.batch) : best(row.batch, 1);
  if (single == nullptr || !row.trouble.empty()) return {};
  return row.images_per_second / single->images_per_second;
}

std::string BenchTable::explanation(const BenchRow& row) const {
  if (!row.trouble.empty()) return "not measured: " + row.trouble;
  if (row.rival) return {};
  const std::string head =
      core::text(name_of(row), " x ", row.devices, ", batch ", row.batch, ": ");
  if (row.utilisation && *row.utilisation < kLaunchBound && !row.captured) {
    std::string line =
        core::text(head, "launch bound: ", formatted("%.0f", 100 * (1 - *row.utilisation)),
                   " % of the step the GPU waits for the CPU");
    for (const BenchRow& other : rows_) {
      if (other.way == row.way && other.devices == row.devices && other.batch == row.batch &&
          other.captured && other.trouble.empty()) {
        line += "; --capture on gives " + formatted("%.0f", other.images_per_second) + " images/s";
      }
    }
    return line;
  }
  const auto factor = speed_up(row);
  if (!factor || row.devices == 1 || *factor >= kScalesWell * row.devices) return {};
  std::string line =
      core::text(head, formatted("%.0f", 100 * *factor / row.devices), " % of ideal scaling");
  if (row.exposed_communication_ms && *row.exposed_communication_ms > 0) {
    line += core::text(
        "; ", formatted("%.2f", *row.exposed_communication_ms), " of ",
        formatted("%.2f", row.step_ms),
        " ms is communication that nothing covers: a larger batch or accumulation hides it");
  } else if (!row.utilisation) {
    line += "; the ranks share this machine's cores and memory";
  }
  return line;
}

Json BenchTable::json() const {
  Json out = Json::array();
  for (const BenchRow& row : rows_) {
    const auto factor = speed_up(row);
    out.push_back({{"way", row.way},
                   {"rival", row.rival},
                   {"captured", row.captured},
                   {"devices", row.devices},
                   {"batch", row.batch},
                   {"images_per_second", row.images_per_second},
                   {"step_ms", row.step_ms},
                   {"epoch_seconds", or_null(row.epoch_seconds)},
                   {"speed_up", or_null(factor)},
                   {"efficiency", factor ? Json(*factor / row.devices) : Json(nullptr)},
                   {"allocated_bytes", or_null(row.allocated_bytes)},
                   {"peak_bytes", or_null(row.peak_bytes)},
                   {"reserved_bytes", or_null(row.reserved_bytes)},
                   {"utilisation", or_null(row.utilisation)},
                   {"exposed_communication_ms", or_null(row.exposed_communication_ms)},
                   {"trouble", row.trouble},
                   {"explanation", explanation(row)}});
  }
  return out;
}

std::vector<std::vector<std::string>> BenchTable::cells() const {
  std::vector<std::vector<std::string>> table{{"way", "devices", "batch", "images/s", "step ms",
                                               "speed-up", "efficiency", "allocated MiB",
                                               "peak MiB", "reserved MiB", "busy", "exposed ms"}};
  const bool epochs =
      std::ranges::any_of(rows_, [](const BenchRow& row) { return row.epoch_seconds.has_value(); });
  if (epochs) table[0].push_back("epoch s");
  for (const BenchRow& row : rows_) {
    const auto factor = speed_up(row);
    const bool here = row.trouble.empty();
    table.push_back({name_of(row), std::to_string(row.devices), std::to_string(row.batch),
                     here ? formatted("%.0f", row.images_per_second) : "failed",
                     here ? formatted("%.2f", row.step_ms) : "-", shown(factor, "%.2f"),
                     factor ? formatted("%.0f %%", 100 * *factor / row.devices) : "-",
                     shown(row.allocated_bytes, "%.0f", kMebi),
                     shown(row.peak_bytes, "%.0f", kMebi), shown(row.reserved_bytes, "%.0f", kMebi),
                     row.utilisation ? formatted("%.0f %%", 100 * *row.utilisation) : "-",
                     shown(row.exposed_communication_ms, "%.2f")});
    if (epochs) table.back().push_back(shown(row.epoch_seconds, "%.1f"));
  }
  return table;
}

std::string BenchTable::text() const {
  const auto table = cells();
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      out += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    out += '\n';
  }
  for (const BenchRow& row : rows_) {
    const std::string line = explanation(row);
    if (!line.empty()) out += (row.trouble.empty() ? line : name_of(row) + ": " + line) + '\n';
  }
  return out;
}

std::string BenchTable::markdown() const {
  const auto table = cells();
  std::string out;
  for (std::size_t r = 0; r < table.size(); ++r) {
    out += "| " + core::joined(table[r], " | ") + " |\n";
    if (r > 0) continue;
    out += '|';
    for (std::size_t i = 0; i < table[0].size(); ++i) out += i == 0 ? " --- |" : " ---: |";
    out += '\n';
  }
  for (const BenchRow& row : rows_) {
    const std::string line = explanation(row);
    if (!line.empty()) out += "\n- " + (row.trouble.empty() ? line : name_of(row) + ": " + line);
  }
  return out + '\n';
}

BenchRow measured(BenchRow row, const Json& result) {
  const auto whole = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = result.find(key);
    if (found == result.end() || !found->is_number() || *found == 0) return {};
    return found->get<std::int64_t>();
  };
  row.step_ms = result.at("step_ms");
  row.images_per_second = 1000.0 * static_cast<double>(row.batch * row.devices) / row.step_ms;
  row.allocated_bytes = whole("allocated_bytes");
  row.peak_bytes = whole("peak_bytes");
  row.reserved_bytes = whole("reserved_bytes");
  const std::string obstacle = result.value("not_captured", "");
  if (row.captured && !obstacle.empty()) row.trouble = "the step was not captured: " + obstacle;
  const auto profile = result.find("profile");
  if (profile != result.end() && (*profile)["on_device"] == true) {
    row.utilisation = (*profile)["utilisation"].get<double>();
    row.exposed_communication_ms = (*profile)["exposed_communication_ms"].get<double>();
  }
  return row;
}

}  // namespace yoke::cli
