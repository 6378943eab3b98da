// Batch normalisation in training mode over channels-last memory, with the residual add and the
// ReLU after it in the same passes.
//
// Forward: statistics (reads x), apply (reads x and the residual, writes y). Backward: sums (reads
// x and dy), gradients (reads x and dy, writes dx and the residual's gradient). The second pass of
// each goes through memory in the opposite order, so that it begins with what the first has left in
// the L2 cache. Sums are fp32, taken in an order that depends on the launch's shape alone.
//
// Which elements passed the ReLU: without a residual it is computed again from x; with one it is
// kept as a bit each, and the first pass of backward writes what came through, which is the
// residual's gradient too, so that the second is the plain one.

#include "batch_norm_args.hpp"
#include "pack.cuh"

using yoke::kernels::BatchNormArgs;

constexpr int kReduceThreads = 512;
constexpr int kApplyThreads = 256;
constexpr int kWarps = kReduceThreads / 32;
constexpr int kUnroll = 4;       // rows in flight in a thread
constexpr int kUnrollAlone = 8;  // where a kernel reads one tensor only
// Partial sums that a thread of the last block reads at once: its loads wait for each other, so few
// and wide ones end sooner. ResNet-50 has 106 such ends a step.
constexpr int kAtOnce = kVector >= 2 ? 4 : 2;

namespace {

/// A thread's part of the tensor: one vector of channels, every stride-th row.
struct Part {
  int lane;
  int lanes;
  int channel;
  bool inside;
  long long first;
  long long stride;

  __device__ Part(const BatchNormArgs& a, int threads) {
    lanes = 1 << a.lane_bits;
    lane = static_cast<int>(threadIdx.x) & (lanes - 1);
    channel = (static_cast<int>(blockIdx.x) * lanes + lane) * kVector;
    inside = channel < a.channels;
    const int height = threads >> a.lane_bits;
    first = static_cast<long long>(blockIdx.y) * height + (threadIdx.x >> a.lane_bits);
    stride = static_cast<long long>(gridDim.y) * height;
  }
};

__device__ __forceinline__ void load_floats(const float* from, int channel, float otherwise,
                                            float (&to)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) to[j] = from == nullptr ? otherwise : from[channel + j];
}

struct alignas(4 * kAtOnce) Floats {
  float value[kAtOnce];
};

/// Past the L1 cache, which may hold what other blocks have overwritten.
__device__ __forceinline__ Floats load_floats_cached_far(const float* from) {
  Floats floats;
  if constexpr (kAtOnce == 4) {
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(floats.value[0]), "=f"(floats.value[1]), "=f"(floats.value[kAtOnce - 2]),
                   "=f"(floats.value[kAtOnce - 1])
                 : "l"(from));
  } else {
    asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];"
                 : "=f"(floats.value[0]), "=f"(floats.value[1])
                 : "l"(from));
  }
  return floats;
}

/// y before the ReLU: the same expression forward and backward, or a mask computed again would not
/// be the one that was.
__device__ __forceinline__ float normalised(float x, float mean, float scale, float bias) {
  return fmaf(x - mean, scale, bias);
}

/// A NaN passes, as in torch's relu.
__device__ __forceinline__ bool passes(float value) { return !(value <= 0.0F); }

/// Sums `value` of each channel over all threads and blocks of the tile. True in the block that
/// came last; its `total` [2 * kVector, lanes] then holds the sums.
__device__ bool sum_over_tile(float (&value)[2 * kVector], const BatchNormArgs& a, const Part& part,
                              float* total) {
  __shared__ float shared[kWarps * 2 * kVector * 32];
  __shared__ bool last;
  const int lanes = part.lanes;
  const int outputs = 2 * kVector * lanes;  // at most kReduceThreads
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread >> 5;

#pragma unroll
  for (int k = 0; k < 2 * kVector; ++k) {
    for (int offset = 16; offset >= lanes; offset >>= 1) {
      value[k] += __shfl_xor_sync(0xFFFFFFFFU, value[k], offset);
    }
  }
  if ((thread & 31) < lanes) {
#pragma unroll
    for (int k = 0; k < 2 * kVector; ++k) {
      shared[warp * outputs + k * lanes + part.lane] = value[k];
    }
  }
  __syncthreads();
  if (thread < outputs) {
    float sum = 0.0F;
    for (int w = 0; w < kWarps; ++w) sum += shared[w * outputs + thread];
    a.partial[(static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x) * outputs + thread] =
        sum;
  }
  __threadfence();
  __syncthreads();
  if (thread == 0) last = atomicAdd(a.arrived + blockIdx.x, 1U) + 1U == gridDim.y;
  __syncthreads();
  if (!last) return false;

  __threadfence();
  const int places = outputs / kAtOnce;
  const int groups = kReduceThreads / places;
  const int group = thread / places;
  const int output = (thread - group * places) * kAtOnce;
  float sum[kAtOnce] = {};
#pragma unroll 8
  for (unsigned split = static_cast<unsigned>(group); split < gridDim.y;
       split += static_cast<unsigned>(groups)) {
    const Floats found = load_floats_cached_far(
        a.partial + (static_cast<long long>(split) * gridDim.x + blockIdx.x) * outputs + output);
#pragma unroll
    for (int q = 0; q < kAtOnce; ++q) sum[q] += found.value[q];
  }
#pragma unroll
  for (int q = 0; q < kAtOnce; ++q) shared[group * outputs + output + q] = sum[q];
  __syncthreads();
  if (thread < outputs) {
    float all = 0.0F;
    for (int g = 0; g < groups; ++g) all += shared[g * outputs + thread];
    total[thread] = all;
  }
  if (thread == 0) a.arrived[blockIdx.x] = 0U;
  __syncthreads();
  return true;
}

template <bool kRelu, bool kResidual>
__device__ void forward_apply(const BatchNormArgs& a) {
  const Part part(a, kApplyThreads);
  if (!part.inside) return;
  float mean[kVector];
  float scale[kVector];
  float bias[kVector];
  float invstd[kVector];
  load_floats(a.mean, part.channel, 0.0F, mean);
  load_floats(a.invstd, part.channel, 0.0F, invstd);
  load_floats(a.weight, part.channel, 1.0F, scale);
  load_floats(a.bias, part.channel, 0.0F, bias);
#pragma unroll
  for (int j = 0; j < kVector; ++j) scale[j] *= invstd[j];

  const Raw* x = static_cast<const Raw*>(a.x) + part.channel;
  const Raw* residual = static_cast<const Raw*>(a.residual) + part.channel;
  Raw* y = static_cast<Raw*>(a.out) + part.channel;
  for (long long r = part.first; r < a.rows; r += kUnroll * part.stride) {
    Pack in[kUnroll];
    Pack added[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const long long row = a.rows - 1 - (r + u * part.stride);
      if (row < 0) continue;
      in[u] = load(x + row * a.channels);
      if (kResidual) added[u] = load(residual + row * a.channels);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const long long row = a.rows - 1 - (r + u * part.stride);
      if (row < 0) continue;
      Pack out;
      unsigned bits = 0;
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        float value = normalised(to_float(in[u].value[j]), mean[j], scale[j], bias[j]);
        if (kResidual) value += to_float(added[u].value[j]);
        if (kRelu) {
          const bool pass = passes(value);
          bits |= static_cast<unsigned>(pass) << j;
          value = pass ? value : 0.0F;
        }
        out.value[j] = from_float(value);
      }
      store(y + row * a.channels, out);
      if (kRelu && kResidual) {
        a.mask[(row * a.channels + part.channel) / kVector] = static_cast<unsigned char>(bits);
      }
    }
  }
}

/// Sums of the gradient before the ReLU and of its products with x - mean.
template <bool kRelu, bool kResidual>
__device__ void backward_sums(const BatchNormArgs& a) {
  const Part part(a, kReduceThreads);
  float sums[2 * kVector] = {};
  if (part.inside) {
    float mean[kVector];
    float scale[kVector];
    float bias[kVector];
    load_floats(a.mean, part.channel, 0.0F, mean);
    if (kRelu && !kResidual) {
      float invstd[kVector];
      load_floats(a.invstd, part.channel, 0.0F, invstd);
      load_floats(a.weight, part.channel, 1.0F, scale);
      load_floats(a.bias, part.channel, 0.0F, bias);
#pragma unroll
      for (int j = 0; j < kVector; ++j) scale[j] *= invstd[j];
    }
    const Raw* x = static_cast<const Raw*>(a.x) + part.channel;
    const Raw* dy = static_cast<const Raw*>(a.dy) + part.channel;
    const Raw* dy2 = static_cast<const Raw*>(a.dy2) + part.channel;
    Raw* dresidual = static_cast<Raw*>(a.dresidual) + part.channel;
    for (long long r = part.first; r < a.rows; r += kUnroll * part.stride) {
      Pack in[kUnroll];
      Pack gradient[kUnroll];
      Pack second[kUnroll];
      unsigned bits[kUnroll] = {};
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const long long row = r + u * part.stride;
        if (row >= a.rows) continue;
        in[u] = load(x + row * a.channels);
        gradient[u] = load(dy + row * a.channels);
        if (kRelu && kResidual) {
          if (a.dy2 != nullptr) second[u] = load(dy2 + row * a.channels);
          bits[u] = a.mask[(row * a.channels + part.channel) / kVector];
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const long long row = r + u * part.stride;
        if (row >= a.rows) continue;
        Pack passed;
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          const float value = to_float(in[u].value[j]);
          float d = to_float(gradient[u].value[j]);
          if (kRelu && kResidual) {
            if (a.dy2 != nullptr) d += to_float(second[u].value[j]);
            passed.value[j] = from_float(((bits[u] >> j) & 1U) != 0U ? d : 0.0F);
            d = to_float(passed.value[j]);
          } else if (kRelu) {
            d = passes(normalised(value, mean[j], scale[j], bias[j])) ? d : 0.0F;
          }
          sums[j] += d;
          sums[kVector + j] = fmaf(d, value - mean[j], sums[kVector + j]);
        }
        if (kRelu && kResidual) store(dresidual + row * a.channels, passed);
      }
    }
  }
  __shared__ float total[2 * kVector * 32];
  if (!sum_over_tile(sums, a, part, total)) return;

  const int k = static_cast<int>(threadIdx.x) >> a.lane_bits;
  const int lane = static_cast<int>(threadIdx.x) & (part.lanes - 1);
  const int channel = (static_cast<int>(blockIdx.x) * part.lanes + lane) * kVector + k;
  if (k >= kVector || channel >= a.channels) return;
  const float sum = total[threadIdx.x];
  const float product = total[threadIdx.x + kVector * part.lanes];
  const float invstd = a.invstd[channel];
  const float rows = static_cast<float>(a.rows);
  a.dbias[channel] = sum;
  a.dweight[channel] = product * invstd;
  a.factors[channel] = sum / rows;
  a.factors[a.channels + channel] = product * invstd * invstd / rows;
}

template <bool kRelu>
__device__ void backward_apply(const BatchNormArgs& a) {
  const Part part(a, kApplyThreads);
  if (!part.inside) return;
  float mean[kVector];
  float scale[kVector];
  float bias[kVector];
  float mean_dy[kVector];
  float slope[kVector];
  {
    float invstd[kVector];
    load_floats(a.mean, part.channel, 0.0F, mean);
    load_floats(a.invstd, part.channel, 0.0F, invstd);
    load_floats(a.weight, part.channel, 1.0F, scale);
    load_floats(a.bias, part.channel, 0.0F, bias);
    load_floats(a.factors, part.channel, 0.0F, mean_dy);
    load_floats(a.factors + a.channels, part.channel, 0.0F, slope);
#pragma unroll
    for (int j = 0; j < kVector; ++j) scale[j] *= invstd[j];
  }
  const Raw* x = static_cast<const Raw*>(a.x) + part.channel;
  const Raw* dy = static_cast<const Raw*>(a.dy) + part.channel;
  Raw* dx = static_cast<Raw*>(a.out) + part.channel;
  for (long long r = part.first; r < a.rows; r += kUnroll * part.stride) {
    Pack in[kUnroll];
    Pack gradient[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const long long row = a.rows - 1 - (r + u * part.stride);
      if (row < 0) continue;
      in[u] = load(x + row * a.channels);
      gradient[u] = load(dy + row * a.channels);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const long long row = a.rows - 1 - (r + u * part.stride);
      if (row < 0) continue;
      Pack out;
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        const float value = to_float(in[u].value[j]);
        float d = to_float(gradient[u].value[j]);
        if (kRelu) d = passes(normalised(value, mean[j], scale[j], bias[j])) ? d : 0.0F;
        out.value[j] = from_float((d - mean_dy[j] - (value - mean[j]) * slope[j]) * scale[j]);
      }
      store(dx + row * a.channels, out);
    }
  }
}

}  // namespace

/// Means and variances about the first row's values, which keeps the sums of squares small where
/// the mean is large against the spread.
extern "C" __global__ void __launch_bounds__(kReduceThreads) statistics(const BatchNormArgs a) {
  const Part part(a, kReduceThreads);
  float sums[2 * kVector] = {};
  const Raw* x = static_cast<const Raw*>(a.x) + part.channel;
  if (part.inside) {
    const Pack start = load(x);
    for (long long r = part.first; r < a.rows; r += kUnrollAlone * part.stride) {
      Pack in[kUnrollAlone];
#pragma unroll
      for (int u = 0; u < kUnrollAlone; ++u) {
        const long long row = r + u * part.stride;
        if (row < a.rows) in[u] = load(x + row * a.channels);
      }
#pragma unroll
      for (int u = 0; u < kUnrollAlone; ++u) {
        if (r + u * part.stride >= a.rows) continue;
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          const float value = to_float(in[u].value[j]) - to_float(start.value[j]);
          sums[j] += value;
          sums[kVector + j] = fmaf(value, value, sums[kVector + j]);
        }
      }
    }
  }
  __shared__ float total[2 * kVector * 32];
  if (!sum_over_tile(sums, a, part, total)) return;

  const int k = static_cast<int>(threadIdx.x) >> a.lane_bits;
  const int lane = static_cast<int>(threadIdx.x) & (part.lanes - 1);
  const int channel = (static_cast<int>(blockIdx.x) * part.lanes + lane) * kVector + k;
  if (k >= kVector || channel >= a.channels) return;
  const float rows = static_cast<float>(a.rows);
  const float offset = total[threadIdx.x] / rows;
  float variance = total[threadIdx.x + kVector * part.lanes] / rows - offset * offset;
  if (variance < 0.0F) variance = 0.0F;  // by rounding; a NaN stays
  const float mean = to_float(static_cast<const Raw*>(a.x)[channel]) + offset;
  a.mean[channel] = mean;
  a.invstd[channel] = 1.0F / sqrtf(variance + a.eps);
  if (a.running_mean != nullptr) {
    const float unbiased = variance * (rows / (rows - 1.0F));
    a.running_mean[channel] += a.momentum * (mean - a.running_mean[channel]);
    a.running_var[channel] += a.momentum * (unbiased - a.running_var[channel]);
  }
  if (channel == 0 && a.batches != nullptr) ++*a.batches;
}

#define YOKE_FORWARD(name, relu, residual)                    \
  extern "C" __global__ void __launch_bounds__(kApplyThreads) \
      forward_##name(const BatchNormArgs a) {                 \
    forward_apply<relu, residual>(a);                         \
  }
#define YOKE_SUMS(name, relu, residual)                        \
  extern "C" __global__ void __launch_bounds__(kReduceThreads) \
      sums_##name(const BatchNormArgs a) {                     \
    backward_sums<relu, residual>(a);                          \
  }
#define YOKE_BACKWARD(name, relu)                             \
  extern "C" __global__ void __launch_bounds__(kApplyThreads) \
      backward_##name(const BatchNormArgs a) {                \
    backward_apply<relu>(a);                                  \
  }

YOKE_FORWARD(plain, false, false)
YOKE_FORWARD(relu, true, false)
YOKE_FORWARD(add, false, true)
YOKE_FORWARD(add_relu, true, true)
YOKE_SUMS(plain, false, false)
YOKE_SUMS(relu, true, false)
YOKE_SUMS(add_relu, true, true)
YOKE_BACKWARD(plain, false)
YOKE_BACKWARD(relu, true)
