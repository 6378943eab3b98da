#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/feed/image_rows.hpp"
#include "yoke/feed/random.hpp"

namespace yoke::data {

/// What one sample looks like; all samples of a data set look the same.
struct SampleLayout {
  std::vector<std::int64_t> input_sizes{};
  at::ScalarType input_dtype = at::kFloat;
  std::vector<std::int64_t> target_sizes{};  ///< empty: a scalar
  at::ScalarType target_dtype = at::kLong;
  bool channels_last = false;  ///< an input [channels, height, width] lies in memory as
                               ///< [height, width, channels]

  friend bool operator==(const SampleLayout&, const SampleLayout&) = default;
};

/// Which samples to put into which rows.
struct Request {
  std::span<const std::int64_t> indices;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  int worker = -1;  ///< the loader's thread that asks; -1: the caller's own
};

/// Rows of a batch on the host, one behind the other in memory, to be written whole.
struct Rows {
  at::Tensor input;              // [indices.size(), ...input_sizes]
  at::Tensor target;             // [indices.size(), ...target_sizes]
  std::span<std::uint8_t> good;  // [indices.size()] 1; set to 0 for a row to be left out
};

/// Time that all of a loader's threads have spent on one stage of their work.
struct StageTime {
  std::string name;
  std::chrono::nanoseconds spent{0};
};

class NamedDataset;

/// Samples by number. To write one of your own, derive from MapDataset, or from
/// NamedDataset for tensors of other names and shapes.
///
/// Threads: the loader calls every function from several threads at once.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;

  /// 0: the targets are not classes. Else the loader refuses a target outside 0..num_classes()-1.
  [[nodiscard]] virtual std::int64_t num_classes() const { return 0; }

  [[nodiscard]] virtual SampleLayout layout() const = 0;

  /// Puts sample request.indices[i] into row i. What it chooses by chance must follow from
  /// feed::Draws({request.seed, request.epoch, index}) alone.
  virtual void fill(const Request& request, const Rows& rows) const = 0;

  /// How many samples a thread takes at a time: more where one costs less than a few microseconds.
  [[nodiscard]] virtual std::int64_t rows_at_once() const { return 1; }

  /// What becomes of a batch's input once it lies on the loader's device, on its current stream:
  /// work that is cheaper there, such as bytes to normalised floats.
  [[nodiscard]] virtual at::Tensor finished(const at::Tensor& input) const { return input; }

  /// Where a sample comes from, for messages: a file's path, say.
  [[nodiscard]] virtual std::string origin(std::int64_t /*index*/) const { return {}; }

  /// Differs, with all likelihood, where the data do: ranks compare it before the first batch.
  [[nodiscard]] virtual std::uint64_t fingerprint() const { return 0; }

  /// Samples that could not be read, for a list in the run's folder.
  [[nodiscard]] virtual std::vector<feed::BadSample> bad_samples() const { return {}; }

  /// This, where it is one that makes whole batches itself.
  [[nodiscard]] virtual const NamedDataset* named() const { return nullptr; }

  /// For the loader's report: where its threads' time goes.
  [[nodiscard]] virtual std::vector<StageTime> stages() const { return {}; }
};

struct Sample {
  at::Tensor input;
  at::Tensor target;
};

/// A data set that gives one sample at a time, as PyTorch's map-style ones.
///
///   struct Squares : yoke::data::MapDataset {
///     std::int64_t size() const override { return 1000; }
///     yoke::data::Sample get(std::int64_t index, yoke::feed::Draws&) const override {
///       const at::Tensor x = at::full({1}, 0.001 * double(index));
///       return {x, x * x};
///     }
///   };
///
/// Shapes and dtypes: those of sample 0 for all. A sample on a card is copied to the host.
/// Errors: invalid_argument, from the loader's next batch, for a sample that looks different from
///   sample 0, with its index, its origin and both shapes; what get() throws comes with the index.
class MapDataset : public Dataset {
 public:
  /// `random` gives this sample's random numbers in this epoch: the same on any number of threads
  /// and ranks, and in a repeated run.
  [[nodiscard]] virtual Sample get(std::int64_t index, feed::Draws& random) const = 0;

  [[nodiscard]] SampleLayout layout() const override;
  void fill(const Request& request, const Rows& rows) const override;
};

}  // namespace yoke::data
