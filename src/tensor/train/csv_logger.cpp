#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "yoke/core/files.hpp"
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

class CsvLogger final : public Logger {
 public:
  explicit CsvLogger(std::filesystem::path file) : file_(std::move(file)) {}

  void begin(const RunFacts&) override { write(); }

  void scalars(const Scalars& record) override {
    if (record.of != Scalars::Of::epoch) return;
    for (const auto& [name, value] : record.values) {
      if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
        columns_.push_back(name);
    }
    rows_.push_back(record);
    write();
  }

  void end(const RunEnd&) override {}

 private:
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
