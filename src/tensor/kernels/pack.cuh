#pragma once

// What a thread loads and stores at once: YOKE_VECTOR elements of YOKE_TYPE (0 float32, 1 float16,
// 2 bfloat16), as many as make 16 bytes, or one where channels are no multiple of that. Conversions
// are in PTX, so that kernels need no header of the toolkit. Needs sm_80.

constexpr int kVector = YOKE_VECTOR;

#if YOKE_TYPE == 0
using Raw = float;
__device__ __forceinline__ float to_float(Raw raw) { return raw; }
__device__ __forceinline__ Raw from_float(float value) { return value; }
#elif YOKE_TYPE == 1
using Raw = unsigned short;
__device__ __forceinline__ float to_float(Raw raw) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(raw));
  return value;
}
__device__ __forceinline__ Raw from_float(float value) {
  Raw raw;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(value));
  return raw;
}
#else
using Raw = unsigned short;
__device__ __forceinline__ float to_float(Raw raw) {
  return __uint_as_float(static_cast<unsigned>(raw) << 16);
}
__device__ __forceinline__ Raw from_float(float value) {
  Raw raw;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(raw) : "f"(value));
  return raw;
}
#endif

struct alignas(sizeof(Raw) * kVector) Pack {
  Raw value[kVector];
};

struct alignas(kVector) Bytes {
  unsigned char value[kVector];
};

__device__ __forceinline__ Pack load(const Raw* from) {
  return *reinterpret_cast<const Pack*>(from);
}
__device__ __forceinline__ void store(Raw* to, const Pack& pack) {
  *reinterpret_cast<Pack*>(to) = pack;
}
