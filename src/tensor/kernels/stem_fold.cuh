// Folds squares of 2x2 pixels into channels, so that a convolution of stride 2 over 3 channels
// becomes one of stride 1 over 16, which tensor cores are made for: out[q, r, (2 i + j) * channels
// + c] = in[c, 2 q + i - padding, 2 r + j - padding], zero outside the image and above.

#include "pack.cuh"
#include "stem_fold_args.hpp"

using yoke::kernels::StemFoldArgs;

constexpr int kFoldThreads = 256;
constexpr int kFolded = 16;  // channels of out

extern "C" __global__ void __launch_bounds__(kFoldThreads) stem_fold(const StemFoldArgs a) {
  const long long count = static_cast<long long>(a.batch) * a.out_height * a.out_width;
  const long long step = static_cast<long long>(gridDim.x) * kFoldThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kFoldThreads + threadIdx.x; i < count;
       i += step) {
    const int r = static_cast<int>(i % a.out_width);
    const long long rest = i / a.out_width;
    const int q = static_cast<int>(rest % a.out_height);
    const long long image = rest / a.out_height;
    Pack out[kFolded / kVector];
#pragma unroll
    for (int k = 0; k < kFolded; ++k) out[k / kVector].value[k % kVector] = from_float(0.0F);
#pragma unroll
    for (int square = 0; square < 4; ++square) {
      const int h = 2 * q + square / 2 - a.padding;
      const int w = 2 * r + square % 2 - a.padding;
      if (h < 0 || h >= a.height || w < 0 || w >= a.width) continue;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (c >= a.channels) continue;
        const long long place = image * a.stride_batch + c * a.stride_channel +
                                h * a.stride_height + w * a.stride_width;
        const Raw value = a.in_is_float != 0 ? from_float(static_cast<const float*>(a.in)[place])
                                             : static_cast<const Raw*>(a.in)[place];
        // A place known at run time only would move `out` to local memory.
        const int k = square * a.channels + c;
#pragma unroll
        for (int known = square; known < square * 4 + 4; ++known) {
          if (known == k) out[known / kVector].value[known % kVector] = value;
        }
      }
    }
#pragma unroll
    for (int part = 0; part < kFolded / kVector; ++part) {
      store(static_cast<Raw*>(a.out) + i * kFolded + part * kVector, out[part]);
    }
  }
}
