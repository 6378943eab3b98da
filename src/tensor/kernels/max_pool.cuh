// Max pooling over channels-last memory that keeps the winner's place in its window as one byte;
// torch keeps eight. Backward gathers: each input looks at the windows that hold it, so nothing is
// zeroed before and nothing is added atomically.

#include "max_pool_args.hpp"
#include "pack.cuh"

using yoke::kernels::MaxPoolArgs;

constexpr int kPoolThreads = 256;

/// The first of equals wins, and a NaN beats all, as in torch.
extern "C" __global__ void __launch_bounds__(kPoolThreads) max_pool_forward(const MaxPoolArgs a) {
  const int vectors = a.channels / kVector;
  const long long count = static_cast<long long>(a.batch) * a.out_height * a.out_width * vectors;
  const long long step = static_cast<long long>(gridDim.x) * kPoolThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kPoolThreads + threadIdx.x; i < count;
       i += step) {
    const int vector = static_cast<int>(i % vectors);
    long long rest = i / vectors;
    const int ow = static_cast<int>(rest % a.out_width);
    rest /= a.out_width;
    const int oh = static_cast<int>(rest % a.out_height);
    const long long image = rest / a.out_height;
    const int top = oh * a.stride - a.padding;
    const int left = ow * a.stride - a.padding;
    const Raw* in = static_cast<const Raw*>(a.in) + vector * kVector;
    float best[kVector];
    Pack out;
    Bytes winner;
    bool begun = false;
    for (int kh = 0; kh < a.kernel; ++kh) {
      const int h = top + kh;
      if (h < 0 || h >= a.height) continue;
      for (int kw = 0; kw < a.kernel; ++kw) {
        const int w = left + kw;
        if (w < 0 || w >= a.width) continue;
        const Pack pack = load(in + ((image * a.height + h) * a.width + w) * a.channels);
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          const float value = to_float(pack.value[j]);
          if (!begun || value > best[j] || value != value) {
            best[j] = value;
            out.value[j] = pack.value[j];
            winner.value[j] = static_cast<unsigned char>(kh * a.kernel + kw);
          }
        }
        begun = true;
      }
    }
    store(static_cast<Raw*>(a.out) + i * kVector, out);
    *reinterpret_cast<Bytes*>(a.winner + i * kVector) = winner;
  }
}

extern "C" __global__ void __launch_bounds__(kPoolThreads) max_pool_backward(const MaxPoolArgs a) {
  const int vectors = a.channels / kVector;
  const long long count = static_cast<long long>(a.batch) * a.height * a.width * vectors;
  const long long step = static_cast<long long>(gridDim.x) * kPoolThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kPoolThreads + threadIdx.x; i < count;
       i += step) {
    const int vector = static_cast<int>(i % vectors);
    long long rest = i / vectors;
    const int w = static_cast<int>(rest % a.width);
    rest /= a.width;
    const int h = static_cast<int>(rest % a.height);
    const long long image = rest / a.height;
    // Windows [o * stride - padding, + kernel) that hold h: from `low` to `high`.
    const int low_h = max(0, (h + a.padding - a.kernel + a.stride) / a.stride);
    const int high_h = min(a.out_height - 1, (h + a.padding) / a.stride);
    const int low_w = max(0, (w + a.padding - a.kernel + a.stride) / a.stride);
    const int high_w = min(a.out_width - 1, (w + a.padding) / a.stride);
    float sum[kVector] = {};
    for (int oh = low_h; oh <= high_h; ++oh) {
      const int kh = h + a.padding - oh * a.stride;
      for (int ow = low_w; ow <= high_w; ++ow) {
        const int kw = w + a.padding - ow * a.stride;
        const long long place =
            ((image * a.out_height + oh) * a.out_width + ow) * a.channels + vector * kVector;
        const Bytes winner = *reinterpret_cast<const Bytes*>(a.winner + place);
        const Pack pack = load(static_cast<const Raw*>(a.in) + place);
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          if (winner.value[j] == kh * a.kernel + kw) sum[j] += to_float(pack.value[j]);
        }
      }
    }
    Pack out;
#pragma unroll
    for (int j = 0; j < kVector; ++j) out.value[j] = from_float(sum[j]);
    store(static_cast<Raw*>(a.out) + i * kVector, out);
  }
}
