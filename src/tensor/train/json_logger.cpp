#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "append_file.hpp"
#include "yoke/core/json.hpp"
#include "yoke/train/file_loggers.hpp"

namespace yoke::train {
namespace {

using core::Json;

constexpr int kVersion = 1;

Json object(const NamedValues& values) {
  Json out = Json::object();
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}

class JsonLogger final : public Logger {
 public:
  JsonLogger(std::filesystem::path path, const core::Clock& clock)
      : path_(std::move(path)), clock_(clock) {}

  void begin(const RunFacts& run) override {
    file_.emplace(path_, run.resumed_at > 0 ? AppendFile::Old::kept : AppendFile::Old::emptied);
    Json line = head("run");
    if (run.resumed_at > 0) line["resumed_at"] = run.resumed_at;
    line["device"] = run.device;
    line["ranks"] = run.ranks;
    line["epochs"] = run.epochs;
    line["steps_per_epoch"] = run.steps_per_epoch;
    line["batch_size"] = run.batch_size;
    line["accumulate"] = run.accumulate;
    line["parameters"] = run.parameters;
    put(line);
  }

  void scalars(const Scalars& record) override {
    Json line = head(record.of == Scalars::Of::epoch ? "epoch" : "steps");
    line["epoch"] = record.epoch;
    line["step"] = record.step;
    line["values"] = object(record.values);
    put(line);
  }

  void end(const RunEnd& end) override {
    Json line = head("end");
    line["reason"] = end.reason;
    line["epochs"] = end.epochs;
    line["steps"] = end.steps;
    line["values"] = object(end.values);
    put(line);
  }

 private:
  [[nodiscard]] Json head(const char* kind) const {
    const std::chrono::duration<double> time = clock_.wall().time_since_epoch();
    return Json{{"version", kVersion}, {"kind", kind}, {"time", time.count()}};
  }

  void put(const Json& line) { file_.value().append(core::json_line(line) + "\n"); }

  std::filesystem::path path_;
  std::optional<AppendFile> file_;
  const core::Clock& clock_;
};

}  // namespace

std::shared_ptr<Logger> json_logger(const std::filesystem::path& file, const core::Clock& clock) {
  return std::make_shared<JsonLogger>(file, clock);
}

}  // namespace yoke::train
