#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/json.hpp"

namespace yoke::cli {

// One way to train at one batch size, as it was measured.
struct BenchRow {
  std::string way{};  // "single", "DataParallel", "DDP", "PyTorch DDP", ...
  bool rival = false;
  bool captured = false;  // the step was replayed from a CUDA graph
  int devices = 1;
  std::int64_t batch = 0;  // per device
  double images_per_second = 0;
  double step_ms = 0;
  std::optional<double> epoch_seconds{};          // with real data
  std::optional<std::int64_t> allocated_bytes{};  // of each device, the peaks likewise
  std::optional<std::int64_t> peak_bytes{};
  std::optional<std::int64_t> reserved_bytes{};
  std::optional<double> utilisation{};               // of a device, 0 to 1
  std::optional<double> exposed_communication_ms{};  // a step
  std::string trouble{};                             // why nothing was measured; empty: it was
};

// The rows of one machine, with what follows from them: speed-up over the single device of the same
// batch size (ours: the faster of eager and captured; a rival's: PyTorch eager), scaling
// efficiency, and a line for each row that falls behind.
class BenchTable {
 public:
  void add(BenchRow row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] const std::vector<BenchRow>& rows() const { return rows_; }

  // Nothing where the single device was not measured.
  [[nodiscard]] std::optional<double> speed_up(const BenchRow& row) const;

  // Why the row falls behind, and what helps; empty where it does not.
  [[nodiscard]] std::string explanation(const BenchRow& row) const;

  [[nodiscard]] core::Json json() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string markdown() const;

 private:
  // Of ours the fastest; null if there is none.
  [[nodiscard]] const BenchRow* best(std::int64_t batch, int devices) const;
  [[nodiscard]] const BenchRow* rivals_single(std::int64_t batch) const;
  [[nodiscard]] std::vector<std::vector<std::string>> cells() const;

  std::vector<BenchRow> rows_;
};

// A row from what yoke-bench or bench/peers/step.py printed; `row` holds what is known before.
[[nodiscard]] BenchRow measured(BenchRow row, const core::Json& result);

}  // namespace yoke::cli
