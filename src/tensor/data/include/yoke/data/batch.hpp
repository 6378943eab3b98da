#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::data {

/// Tensors in the order in which they were named.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// This rank's part of one step.
///
/// A rank that has run dry gets 0 rows, so that all ranks take equally many steps, and a bad sample
/// that is left out has no row: weight means by rows(). The tensors are the holder's for as long as
/// it keeps them.
struct Batch {
  at::Tensor input;                   ///< [rows, ...] on the loader's device
  at::Tensor target;                  ///< [rows, ...]; classes: [rows] int64
  NamedTensors fields{};              ///< of a data set that names its tensors: all of them
  std::vector<std::int64_t> indices;  ///< in the data set, of each row
  std::int64_t epoch = 0;
  std::int64_t index = 0;        ///< step of the epoch, from 0
  std::int64_t global_rows = 0;  ///< of all ranks in this step, those left out as bad included

  /// The field of that name. Errors: invalid_argument with the names that there are.
  [[nodiscard]] const at::Tensor& operator[](std::string_view name) const;

  [[nodiscard]] std::int64_t rows() const noexcept {
    return static_cast<std::int64_t>(indices.size());
  }
};

}  // namespace yoke::data
