#pragma once

// What batch_norm.cuh is launched with; included on both sides, so plain types only.

namespace yoke::kernels {

/// x is [rows, channels], channels contiguous. A block works on one tile of (1 << lane_bits)
/// vectors of channels; blocks of one tile share its rows.
struct BatchNormArgs {
  long long rows;
  int channels;
  int lane_bits;

  const void* x;         ///< [rows, channels]
  const void* residual;  ///< [rows, channels]; added before the ReLU; null: none
  const void* dy;        ///< [rows, channels]
  const void* dy2;       ///< [rows, channels]; added to dy; null: none
  void* out;             ///< y or dx: [rows, channels]
  void* dresidual;       ///< [rows, channels]: what of dy came through the ReLU
  unsigned char*
      mask;  ///< [rows, channels / vector], bit j: element j of the vector passed the ReLU

  const float* weight;  ///< [channels]; null: ones
  const float* bias;    ///< [channels]; null: zeros
  float* mean;          ///< [channels]
  float* invstd;        ///< [channels]
  float* running_mean;  ///< [channels]; null: not kept
  float* running_var;
  long long* batches;  ///< [1], counted up; null: not kept
  float* dweight;      ///< [channels]
  float* dbias;        ///< [channels]
  float* factors;      ///< [2, channels]: means of dy and of dy * (x - mean) / variance

  float* partial;     ///< [splits, tiles, 2 * vector << lane_bits]
  unsigned* arrived;  ///< [tiles], zero before and after
  float eps;
  float momentum;
};

}  // namespace yoke::kernels
