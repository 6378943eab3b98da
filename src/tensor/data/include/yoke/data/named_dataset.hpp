#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "yoke/data/batch.hpp"
#include "yoke/data/dataset.hpp"

namespace yoke::data {

/// The tensors of each name side by side, [samples, ...]: what collate() does unless it is written
/// otherwise.
/// Errors: invalid_argument for samples with other names, shapes or types than the first, with the
///   number of the sample and both.
[[nodiscard]] NamedTensors stacked(std::span<const NamedTensors> samples);

/// A data set whose samples are any tensors under names, and whose batches are what its own
/// collate() makes of them.
///
///   struct Sentences : yoke::data::NamedDataset {
///     std::int64_t size() const override { return 1000; }
///     yoke::data::NamedTensors get(std::int64_t index, yoke::feed::Draws&) const override {
///       return {{"tokens", tokens_of(index)}};  // [length], another for each sample
///     }
///     yoke::data::NamedTensors collate(
///         std::span<const yoke::data::NamedTensors> samples) const override {
///       return {{"tokens", padded(samples)}};  // [samples, longest]
///     }
///   };
///
/// Batches: Batch::fields has all tensors, Batch::input and Batch::target those of the names
///   "input" and "target" where there are any. A thread makes a whole batch.
/// Errors: what get() throws comes with the index, what collate() throws with the first one.
class NamedDataset : public Dataset {
 public:
  /// `random` gives this sample's random numbers in this epoch, as for MapDataset.
  [[nodiscard]] virtual NamedTensors get(std::int64_t index, feed::Draws& random) const = 0;

  /// From samples to a batch; at least one sample.
  [[nodiscard]] virtual NamedTensors collate(std::span<const NamedTensors> samples) const {
    return stacked(samples);
  }

  [[nodiscard]] SampleLayout layout() const final { return {}; }
  void fill(const Request& request, const Rows& rows) const final;
  [[nodiscard]] const NamedDataset* named() const final { return this; }

  /// A batch of these samples.
  [[nodiscard]] NamedTensors batch_of(const Request& request) const;
};

}  // namespace yoke::data
