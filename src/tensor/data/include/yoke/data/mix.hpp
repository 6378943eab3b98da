#pragma once

#include <cstdint>

#include "yoke/data/batch.hpp"

namespace yoke::data {

/// Mixes each image of a batch with its neighbour, as torchvision's transforms of these names: for
/// DataLoaderOptions::batch_transform.
///
///   DataLoader loader(images, world, {.batch_size = 256,
///                                     .batch_transform = MixUp{.alpha = 0.2, .num_classes =
///                                     1000}});
///
/// Row i is mixed with row i - 1, row 0 with the last. The part lambda is drawn from
/// Beta(alpha, alpha) once a batch, from (seed, epoch, step), so a repeated or resumed run draws
/// the same, and all ranks do. Which images meet depends on the number of ranks, as in torchvision.
///
/// Shapes: input [rows, channels, height, width] floats; target [rows] int64 becomes [rows,
///   num_classes] float32, which cross entropy takes as probabilities. Threads: any.
/// Errors: invalid_argument for bytes, other targets and an alpha or number of classes below what
///   can be.
struct MixUp {
  double alpha = 1;  ///< above 0
  std::int64_t num_classes = 0;
  std::uint64_t seed = 0;

  void operator()(Batch& batch) const;
};

/// A rectangle of the neighbour takes the place of the image's own.
struct CutMix {
  double alpha = 1;  ///< above 0
  std::int64_t num_classes = 0;
  std::uint64_t seed = 0;

  void operator()(Batch& batch) const;
};

/// One of the two, by lot for each batch.
struct MixUpOrCutMix {
  MixUp mix_up;
  CutMix cut_mix;

  void operator()(Batch& batch) const;
};

}  // namespace yoke::data
