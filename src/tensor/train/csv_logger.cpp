#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/train/file_loggers.hpp"

namespace yoke::train {
namespace {

// A name with a comma, a quote or a line end stands in quotes (RFC 4180).
std::string field(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

// The fields of a line, without the quotes that field() puts around some.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && line[i + 1] == '"') {
      out.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += line[i];
    }
  }
  return out;
}

class CsvLogger final : public Logger {
 public:
  explicit CsvLogger(std::filesystem::path file) : file_(std::move(file)) {}

  void begin(const RunFacts& run) override {
    if (run.resumed_at > 0) read_rows(run.resumed_at);
    write();
  }

  void scalars(const Scalars& record) override {
    if (record.of != Scalars::Of::epoch) return;
    add(record);
    write();
  }

  void end(const RunEnd&) override {}

 private:
  // The epochs that ended before that step, of the process whose run goes on.
  void read_rows(std::int64_t resumed_at) {
    std::error_code missing;
    if (!std::filesystem::exists(file_, missing)) return;
    std::istringstream in(core::read_file(file_));
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> names = fields(line);
    while (std::getline(in, line)) {
      const std::vector<std::string> values = fields(line);
      const auto epoch = core::parse_integer(values.at(0));
      const auto step = core::parse_integer(values.size() > 1 ? values[1] : "");
      if (!epoch || !step || values.size() != names.size())
        throw Error(Code::corrupt_data, core::text(file_.string(), ": \"", line, "\" is no row"));
      if (*step >= resumed_at) continue;  // the epoch that ended there ends once more
      Scalars row{.of = Scalars::Of::epoch, .epoch = *epoch, .step = *step};
      for (std::size_t i = 2; i < names.size(); ++i) {
        if (!values[i].empty()) row.values.emplace_back(names[i], std::stod(values[i]));
      }
      add(row);
    }
  }

  void add(const Scalars& record) {
    for (const auto& [name, value] : record.values) {
      if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
        columns_.push_back(name);
    }
    rows_.push_back(record);
  }

  void write() const {
    std::ostringstream out;
    out.precision(17);
    out << "epoch,step";
    for (const std::string& column : columns_) out << ',' << field(column);
    out << '\n';
    for (const Scalars& row : rows_) {
      out << row.epoch << ',' << row.step;
      for (const std::string& column : columns_) {
        out << ',';
        if (const auto value = value_of(row, column)) out << *value;
      }
      out << '\n';
    }
    core::write_atomically(file_, out.str());
  }

  static std::optional<double> value_of(const Scalars& row, const std::string& column) {
    const auto found = std::find_if(row.values.begin(), row.values.end(),
                                    [&](const auto& value) { return value.first == column; });
    if (found == row.values.end()) return std::nullopt;
    return found->second;
  }

  std::filesystem::path file_;
  std::vector<std::string> columns_;
  std::vector<Scalars> rows_;
};

}  // namespace

std::shared_ptr<Logger> csv_logger(const std::filesystem::path& file) {
  return std::make_shared<CsvLogger>(file);
}

}  // namespace yoke::train
