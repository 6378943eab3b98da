#include "yoke/train/progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::train {
namespace {

constexpr std::size_t kBarCells = 20;
constexpr const char* kEraseLine = "\r\x1b[K";

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 128> out{};
  std::snprintf(out.data(), out.size(), format, values...);
  return out.data();
}

double value_of(const NamedValues& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& value) { return value.first == name; });
  return found == values.end() ? std::nan("") : found->second;
}

/// 12,345.
std::string grouped(double number) {
  const std::string digits = formatted("%.0f", number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::llround(seconds));
  return whole < 3600 ? formatted("%ld:%02ld", whole / 60, whole % 60)
                      : formatted("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

/// "eval/accuracy" is shown as "accuracy"; of "train/..." only the loss.
std::string epoch_facts(const NamedValues& values) {
  std::string out;
  for (const auto& [name, value] : values) {
    if (name == "train/loss") out += formatted("  loss %.4f", value);
    if (name == "train/samples_per_second") out += "  " + grouped(value) + " samples/s";
    if (name.starts_with("eval/")) out += "  " + name + formatted(" %.4f", value);
  }
  return out;
}

}  // namespace

class Progress::Above final : public core::Console {
 public:
  Above(std::shared_ptr<Progress> progress, std::shared_ptr<core::Console> next)
      : progress_(std::move(progress)), next_(std::move(next)) {}

  void write(core::Level level, std::string_view line) noexcept override try {
    const std::lock_guard lock(progress_->mutex_);
    progress_->clear();
    if (next_) next_->write(level, line);
  } catch (...) {
    // No memory or no lock: the line is lost, the run goes on.
  }

 private:
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<core::Console> next_;
};

Progress::Progress(Write write, ProgressOptions options, const core::Clock& clock)
    : write_(std::move(write)), options_(options), clock_(clock) {}

Progress::~Progress() {
  try {
    clear();
  } catch (...) {
    // The bar stays; nothing depends on it.
  }
}

std::shared_ptr<core::Console> Progress::console(std::shared_ptr<core::Console> next) {
  return std::make_shared<Above>(shared_from_this(), std::move(next));
}

void Progress::begin(const RunFacts& run) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  epoch_start_ = shown_ = clock_.now();
  keep(core::text("training ", grouped(static_cast<double>(run.parameters)), " parameters on ",
                  run.ranks, run.ranks == 1 ? " rank (" : " ranks (", run.device, "), ", run.epochs,
                  run.epochs == 1 ? " epoch of " : " epochs of ", run.steps_per_epoch, " steps"));
}

void Progress::step(const StepReport& report) {
  const core::Clock::Monotonic now = clock_.now();
  const std::lock_guard lock(mutex_);
  at_ = report;
  if (report.epoch_step == 1) epoch_start_ = now;
  const bool is_first = options_.terminal && report.step == 1;
  if (!is_first && now - shown_ < (options_.terminal ? options_.redraw : options_.line)) return;
  shown_ = now;
  if (options_.terminal) {
    draw();
  } else {
    keep(core::text("epoch ", at_.epoch + 1, "/", run_.epochs, "  step ", at_.epoch_step, "/",
                    at_.epoch_steps, facts()));
  }
}

void Progress::scalars(const Scalars& record) {
  const std::lock_guard lock(mutex_);
  values_ = record.values;
  if (record.of == Scalars::Of::steps) return;
  keep(core::text("epoch ", record.epoch + 1, "/", run_.epochs, epoch_facts(record.values)));
}

void Progress::end(const RunEnd& end) {
  const std::lock_guard lock(mutex_);
  clear();
  if (end.reason != "done") keep(core::text("stopped after ", end.steps, " steps: ", end.reason));
}

std::string Progress::facts() const {
  std::string out;
  const double loss = value_of(values_, "train/loss");
  if (!std::isnan(loss)) out += formatted("  loss %.4f", loss);
  const double rate = value_of(values_, "train/samples_per_second");
  if (!std::isnan(rate)) out += "  " + grouped(rate) + " samples/s";
  const double passed = std::chrono::duration<double>(shown_ - epoch_start_).count();
  if (at_.epoch_step > 1) {
    const double per_step = passed / static_cast<double>(at_.epoch_step - 1);
    out += "  left " + duration(per_step * static_cast<double>(at_.epoch_steps - at_.epoch_step));
  }
  return out;
}

std::string Progress::bar(std::size_t columns) const {
  const auto steps = static_cast<std::size_t>(std::max<std::int64_t>(1, at_.epoch_steps));
  const std::size_t filled =
      std::min(kBarCells, kBarCells * static_cast<std::size_t>(at_.epoch_step) / steps);
  const std::string cells = std::string(filled, '#') + std::string(kBarCells - filled, '.');
  std::string line = core::text("epoch ", at_.epoch + 1, "/", run_.epochs, " [", cells, "] ",
                                at_.epoch_step, "/", at_.epoch_steps, facts());
  if (line.size() >= columns) line.resize(columns - 1);  // a full last column would scroll
  return line;
}

void Progress::draw() {
  write_(kEraseLine + bar(std::max<std::size_t>(2, options_.columns)));
  drawn_ = true;
}

void Progress::clear() {
  if (!std::exchange(drawn_, false)) return;
  write_(kEraseLine);
}

void Progress::keep(const std::string& line) {
  clear();
  write_(line + "\n");
}

}  // namespace yoke::train
