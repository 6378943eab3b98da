#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "yoke/data/dataset.hpp"

namespace yoke::data {

/// A data set of torch::data, or of anything with `size()` and `get(index)` that gives an example
/// with `data` and `target`.
///
///   DataLoader loader(TorchDataset(torch::data::datasets::MNIST("mnist")), world, {...});
///
/// Not for one that was mapped to batches (Stack): the loader makes batches itself. torch's own
/// transforms draw their chances elsewhere, so those differ from run to run.
///
/// Owns: the data set, and a copy of it for each thread that is inside get(), as torch's loader
///   makes one for each worker.
/// Errors: as MapDataset.
template <class D>
class TorchDataset final : public MapDataset {
 public:
  explicit TorchDataset(D dataset, std::int64_t num_classes = 0)
      : size_(number(dataset.size())),
        num_classes_(num_classes),
        copies_(std::make_shared<Copies>(std::move(dataset))) {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::int64_t num_classes() const override { return num_classes_; }

  [[nodiscard]] Sample get(std::int64_t index, feed::Draws& /*random*/) const override {
    auto dataset = copies_->take();
    auto example = dataset->get(static_cast<std::size_t>(index));
    copies_->give_back(std::move(dataset));
    return {std::move(example.data), std::move(example.target)};
  }

 private:
  // torch's size() may be nothing, which only its streams make use of.
  template <class Size>
  static std::int64_t number(const Size& size) {
    if constexpr (requires { size.value(); }) {
      return static_cast<std::int64_t>(size.value());
    } else {
      return static_cast<std::int64_t>(size);
    }
  }

  class Copies {
   public:
    explicit Copies(D dataset) : first_(std::move(dataset)) {}

    std::unique_ptr<D> take() {
      const std::lock_guard lock(mutex_);
      if (idle_.empty()) return std::make_unique<D>(first_);
      auto copy = std::move(idle_.back());
      idle_.pop_back();
      return copy;
    }
    void give_back(std::unique_ptr<D> copy) {
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(copy));
    }

   private:
    std::mutex mutex_;
    const D first_;
    std::vector<std::unique_ptr<D>> idle_;
  };

  std::int64_t size_;
  std::int64_t num_classes_;
  std::shared_ptr<Copies> copies_;  // of this object and its copies
};

}  // namespace yoke::data
