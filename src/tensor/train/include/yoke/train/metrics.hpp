#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/train/logger.hpp"

namespace yoke::comm {
class Group;
}

namespace yoke::train {

/// A quantity summed over some rows.
struct MetricSum {
  std::string name;
  at::Tensor sum;  ///< scalar of any dtype and device
  double count = 0;
};

/// What is measured of a batch beside its loss: sums, so that means are exact over batches and
/// ranks.
using MetricFunction =
    std::function<std::vector<MetricSum>(const at::Tensor& output, const at::Tensor& target)>;

/// "accuracy": the share of rows whose largest output [rows, classes] is at the target [rows].
[[nodiscard]] std::vector<MetricSum> accuracy(const at::Tensor& output, const at::Tensor& target);

/// Gathers sums and turns them into exact means over all rows of all ranks.
///
///   Means means;
///   for (const Batch& batch : loader.epoch(0)) means.add("loss", loss * rows, rows);
///   const NamedValues values = means.over(world.host_group());
///
/// Threads: one at a time. Streams: sums stay on their device until over(), which waits for it.
class Means {
 public:
  void add(const MetricSum& part) { add(part.name, part.sum, part.count); }
  void add(const std::string& name, const at::Tensor& sum, double count);

  /// The means, in the order of the first rank that has any; empties this.
  /// Ranks: collective. A rank that has added nothing takes part with nothing.
  /// Errors: invalid_argument, on every rank, where ranks have added different names; says who has
  /// which.
  [[nodiscard]] NamedValues over(comm::Group& group);

 private:
  struct Entry {
    std::string name;
    at::Tensor sum;  // scalar float64, on the device of the parts
    double count = 0;
  };

  std::vector<Entry> entries_;
};

}  // namespace yoke::train
