#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "yoke/data/dataset.hpp"

namespace yoke::data {

struct SyntheticOptions {
  std::vector<std::int64_t> shape = {1, 28, 28};
  std::int64_t classes = 10;
  std::int64_t length = 1024;
  std::uint64_t seed = 0;
};

/// Made-up samples that a model can learn: a pattern of the sample's class plus noise as strong as
/// the pattern. For trying out programs and for measuring them without files.
///
///   Synthetic images({.shape = {3, 224, 224}, .classes = 1000, .length = 1'281'167});
///
/// Shapes: input `shape` float32, mean 0, variance 2; target int64. A sample follows from (seed,
/// index) alone; sets with one seed and different lengths agree where both have samples.
/// Copies share their memory. Threads: any. Errors: invalid_argument for a number below 1.
/// Cost: one addition an element; four samples of memory.
class Synthetic final : public Dataset {
 public:
  explicit Synthetic(SyntheticOptions options = {});

  [[nodiscard]] std::int64_t size() const override { return options_.length; }
  [[nodiscard]] std::int64_t num_classes() const override { return options_.classes; }
  [[nodiscard]] SampleLayout layout() const override;
  void fill(const Request& request, const Rows& rows) const override;
  [[nodiscard]] std::int64_t rows_at_once() const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Banks;

  SyntheticOptions options_;
  std::int64_t elements_;               // of a sample
  std::shared_ptr<const Banks> banks_;  // of this object and its copies
};

}  // namespace yoke::data
