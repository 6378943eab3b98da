// Max pooling over channels-last memory that keeps the winner's place in its window as one byte;
// torch keeps eight. Backward gathers: each input looks at the windows that hold it, so nothing is
// zeroed before and nothing is added atomically.

#include "max_pool_args.hpp"
#include "pack.cuh"

using yoke::kernels::MaxPoolArgs;

constexpr int kPoolThreads = 256;

namespace {

/// One vector of channels of one pixel, from a place in [batch, height, width, vectors] order.
struct Place {
  unsigned vector;
  int w;
  int h;
  long long image;

  __device__ Place(unsigned flat, unsigned vectors, unsigned width, unsigned height) {
    vector = flat % vectors;
    flat /= vectors;
    w = static_cast<int>(flat % width);
    flat /= width;
    h = static_cast<int>(flat % height);
    image = flat / height;
  }
};

/// The winner so far of a window's values. The first of equals wins, and a NaN beats all, as in
/// torch.
struct Best {
  float value[kVector];
  Pack pack;
  Bytes place;
  bool begun = false;

  __device__ __forceinline__ void meet(const Pack& pack_here, int place_here) {
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const float here = to_float(pack_here.value[j]);
      if (!begun || here > value[j] || here != here) {
        value[j] = here;
        pack.value[j] = pack_here.value[j];
        place.value[j] = static_cast<unsigned char>(place_here);
      }
    }
    begun = true;
  }
};

__device__ __forceinline__ void store_best(const MaxPoolArgs& a, unsigned i, const Best& best) {
  store(static_cast<Raw*>(a.out) + static_cast<long long>(i) * kVector, best.pack);
  *reinterpret_cast<Bytes*>(a.winner + static_cast<long long>(i) * kVector) = best.place;
}

/// kKernel: known at compile time; 0: read from `a`.
template <int kKernel>
__device__ __forceinline__ void forward(const MaxPoolArgs& a) {
  const unsigned vectors = static_cast<unsigned>(a.channels / kVector);
  const unsigned count = static_cast<unsigned>(a.batch * a.out_height * a.out_width) * vectors;
  for (unsigned i = blockIdx.x * kPoolThreads + threadIdx.x; i < count;
       i += gridDim.x * kPoolThreads) {
    const Place at(i, vectors, static_cast<unsigned>(a.out_width),
                   static_cast<unsigned>(a.out_height));
    const int top = at.h * a.stride - a.padding;
    const int left = at.w * a.stride - a.padding;
    const Raw* in = static_cast<const Raw*>(a.in) + at.vector * kVector;
    const auto inside = [&](int kh, int kw) {
      const int h = top + kh;
      const int w = left + kw;
      return h >= 0 && h < a.height && w >= 0 && w < a.width;
    };
    const auto fetch = [&](int kh, int kw) {
      return load(in + ((at.image * a.height + top + kh) * a.width + left + kw) * a.channels);
    };
    Best best;
    const int kernel = kKernel != 0 ? kKernel : a.kernel;
    for (int kh = 0; kh < kernel; ++kh) {
      for (int kw = 0; kw < kernel; ++kw) {
        if (inside(kh, kw)) best.meet(fetch(kh, kw), kh * kernel + kw);
      }
    }
    store_best(a, i, best);
  }
}

/// Adds what the windows at `place` of the output gave to the input at `index` of their window.
__device__ __forceinline__ void gather(const Bytes& winner, const Pack& gradient, int index,
                                       float (&sum)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if (winner.value[j] == index) sum[j] += to_float(gradient.value[j]);
  }
}

__device__ __forceinline__ void store_sum(Raw* to, const float (&sum)[kVector]) {
  Pack out;
#pragma unroll
  for (int j = 0; j < kVector; ++j) out.value[j] = from_float(sum[j]);
  store(to, out);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kPoolThreads) max_pool_forward(const MaxPoolArgs a) {
  forward<0>(a);
}

extern "C" __global__ void __launch_bounds__(kPoolThreads)
    max_pool_forward_3_2_1(const MaxPoolArgs a) {
  forward<3>(a);
}

extern "C" __global__ void __launch_bounds__(kPoolThreads) max_pool_backward(const MaxPoolArgs a) {
  const unsigned vectors = static_cast<unsigned>(a.channels / kVector);
  const unsigned count = static_cast<unsigned>(a.batch * a.height * a.width) * vectors;
  for (unsigned i = blockIdx.x * kPoolThreads + threadIdx.x; i < count;
       i += gridDim.x * kPoolThreads) {
    const Place at(i, vectors, static_cast<unsigned>(a.width), static_cast<unsigned>(a.height));
    // Windows [o * stride - padding, + kernel) that hold h: from `low` to `high`.
    const int low_h = max(0, (at.h + a.padding - a.kernel + a.stride) / a.stride);
    const int high_h = min(a.out_height - 1, (at.h + a.padding) / a.stride);
    const int low_w = max(0, (at.w + a.padding - a.kernel + a.stride) / a.stride);
    const int high_w = min(a.out_width - 1, (at.w + a.padding) / a.stride);
    float sum[kVector] = {};
    for (int oh = low_h; oh <= high_h; ++oh) {
      const int kh = at.h + a.padding - oh * a.stride;
      for (int ow = low_w; ow <= high_w; ++ow) {
        const int kw = at.w + a.padding - ow * a.stride;
        const long long place =
            ((at.image * a.out_height + oh) * a.out_width + ow) * a.channels + at.vector * kVector;
        gather(*reinterpret_cast<const Bytes*>(a.winner + place),
               load(static_cast<const Raw*>(a.in) + place), kh * a.kernel + kw, sum);
      }
    }
    store_sum(static_cast<Raw*>(a.out) + static_cast<long long>(i) * kVector, sum);
  }
}

/// A thread writes the square of inputs (2 p, 2 p + 1) x (2 q, 2 q + 1): the four windows from
/// (p, q) to (p + 1, q + 1) hold it, and each is read once.
extern "C" __global__ void __launch_bounds__(kPoolThreads)
    max_pool_backward_3_2_1(const MaxPoolArgs a) {
  const unsigned vectors = static_cast<unsigned>(a.channels / kVector);
  const unsigned squares_h = static_cast<unsigned>((a.height + 1) / 2);
  const unsigned squares_w = static_cast<unsigned>((a.width + 1) / 2);
  const unsigned count = static_cast<unsigned>(a.batch) * squares_h * squares_w * vectors;
  for (unsigned i = blockIdx.x * kPoolThreads + threadIdx.x; i < count;
       i += gridDim.x * kPoolThreads) {
    const Place at(i, vectors, squares_w, squares_h);
    float sum[4][kVector] = {};
#pragma unroll
    for (int window = 0; window < 4; ++window) {
      const int down = window / 2;
      const int right = window % 2;
      const int oh = at.h + down;
      const int ow = at.w + right;
      if (oh >= a.out_height || ow >= a.out_width) continue;
      const long long place =
          ((at.image * a.out_height + oh) * a.out_width + ow) * a.channels + at.vector * kVector;
      const Bytes winner = *reinterpret_cast<const Bytes*>(a.winner + place);
      const Pack gradient = load(static_cast<const Raw*>(a.in) + place);
#pragma unroll
      for (int input = 0; input < 4; ++input) {
        // Window o begins at 2 o - 1.
        const int kh = input / 2 + 1 - 2 * down;
        const int kw = input % 2 + 1 - 2 * right;
        if (kh >= 0 && kw >= 0) gather(winner, gradient, 3 * kh + kw, sum[input]);
      }
    }
#pragma unroll
    for (int input = 0; input < 4; ++input) {
      const int h = 2 * at.h + input / 2;
      const int w = 2 * at.w + input % 2;
      if (h >= a.height || w >= a.width) continue;
      store_sum(static_cast<Raw*>(a.out) + ((at.image * a.height + h) * a.width + w) * a.channels +
                    at.vector * kVector,
                sum[input]);
    }
  }
}
