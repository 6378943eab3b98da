#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::data {

/// This rank's part of one step.
///
/// A rank that has run dry gets 0 rows, so that all ranks take equally many steps: weight means by
/// rows(). The tensors are the holder's for as long as it keeps them.
struct Batch {
  at::Tensor input;                   ///< [rows, ...] on the loader's device
  at::Tensor target;                  ///< [rows, ...]; classes: [rows] int64
  std::vector<std::int64_t> indices;  ///< in the data set, of each row
  std::int64_t epoch = 0;
  std::int64_t index = 0;        ///< step of the epoch, from 0
  std::int64_t global_rows = 0;  ///< of all ranks in this step

  [[nodiscard]] std::int64_t rows() const noexcept {
    return static_cast<std::int64_t>(indices.size());
  }
};

}  // namespace yoke::data
