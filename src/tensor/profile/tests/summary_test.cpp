#include "yoke/profile/summary.hpp"

#include <gtest/gtest.h>

namespace yoke::profile {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

Event kernel(const char* name, std::uint64_t start_ms, std::uint64_t end_ms,
             std::uint64_t stream = 7, int device = 0) {
  return {.name = name,
          .on_device = true,
          .device = device,
          .stream = stream,
          .start_ns = start_ms * kMs,
          .end_ns = end_ms * kMs};
}

Event call(const char* name, std::uint64_t start_ms, std::uint64_t end_ms,
           std::uint64_t thread = 1) {
  return {.name = name, .stream = thread, .start_ns = start_ms * kMs, .end_ns = end_ms * kMs};
}

double ms_of(const std::vector<Share>& shares, const std::string& name) {
  for (const Share& share : shares) {
    if (share.name == name) return share.ms;
  }
  return -1;
}

TEST(Summary, BusyTimeCountsOverlapOnceAndGapsAreTheRest) {
  const Summary summary = summarise(
      {kernel("cutlass_gemm", 0, 4), kernel("elementwise", 2, 6, 8), kernel("cutlass_gemm", 8, 10)},
      2);

  EXPECT_TRUE(summary.on_device);
  EXPECT_DOUBLE_EQ(summary.step_ms, 5);
  EXPECT_DOUBLE_EQ(summary.busy_ms, 4);
  EXPECT_DOUBLE_EQ(summary.gaps_ms, 1);
  EXPECT_DOUBLE_EQ(summary.launches, 1.5);
  EXPECT_DOUBLE_EQ(ms_of(summary.groups, "convolution, products"), 3);
  EXPECT_DOUBLE_EQ(ms_of(summary.groups, "pointwise, sums"), 2);
}

TEST(Summary, CommunicationIsExposedWhereNothingElseRuns) {
  const Summary summary =
      summarise({kernel("wgrad", 0, 4), kernel("ncclDevKernel_AllReduce", 2, 9, 20),
                 kernel("FusedSgd", 9, 10)},
                1);

  EXPECT_DOUBLE_EQ(summary.communication_ms, 7);
  EXPECT_DOUBLE_EQ(summary.exposed_communication_ms, 5);
}

TEST(Summary, TheCardWithMostEventsSpeaks) {
  const Summary summary =
      summarise({kernel("gemm", 0, 1, 7, 1), kernel("gemm", 1, 2, 7, 1), kernel("gemm", 0, 9)}, 1);

  EXPECT_DOUBLE_EQ(summary.step_ms, 2);
}

TEST(Summary, AnOperatorsTimeIsItsOwnOnTheHost) {
  const Summary summary = summarise({call("aten::linear", 0, 10), call("aten::addmm", 2, 8),
                                     call("aten::copy_", 3, 4), call("aten::relu", 0, 5, 2)},
                                    1);

  EXPECT_FALSE(summary.on_device);
  EXPECT_DOUBLE_EQ(ms_of(summary.kernels, "aten::linear"), 4);
  EXPECT_DOUBLE_EQ(ms_of(summary.kernels, "aten::addmm"), 5);
  EXPECT_DOUBLE_EQ(ms_of(summary.kernels, "aten::copy_"), 1);
  EXPECT_DOUBLE_EQ(ms_of(summary.kernels, "aten::relu"), 5);
  EXPECT_DOUBLE_EQ(summary.busy_ms, 10);
}

TEST(Summary, NothingRecordedIsSaidAndNoNumberIsInvented) {
  const Summary summary = summarise({}, 3);

  EXPECT_EQ(summary.busy_ms, 0);
  EXPECT_EQ(lines(summary), std::vector<std::string>{"nothing was recorded"});
}

TEST(Summary, KernelsOfKnownLibrariesFindTheirGroup) {
  EXPECT_EQ(group_of("sm90_xmma_fprop_implicit_gemm_bf16"), "convolution, products");
  EXPECT_EQ(group_of("void at::native::vectorized_elementwise_kernel<4>"), "pointwise, sums");
  EXPECT_EQ(group_of("sums_add_relu"), "norm");
  EXPECT_EQ(group_of("max_pool_backward_3_2_1"), "pooling");
  EXPECT_EQ(group_of("void at::native::multi_tensor_apply_kernel<FusedSgdMathFunctor>"),
            "optimizer, gradient lists");
  EXPECT_EQ(group_of("Memcpy DtoD (Device -> Device)"), "copies, casts");
  EXPECT_EQ(group_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), "communication");
  EXPECT_EQ(group_of("something_new"), "other");
}

TEST(Summary, JsonHoldsWhatTheLinesSay) {
  const Summary summary = summarise({kernel("gemm", 0, 4), kernel("max_pool", 5, 6)}, 1);
  const core::Json json = to_json(summary);

  EXPECT_EQ(json["gaps_ms"], 1.0);
  EXPECT_EQ(json["groups"][0]["name"], "convolution, products");
  EXPECT_EQ(json["kernels"].size(), 2U);
  EXPECT_EQ(lines(summary, 1).size(), 4U);
}

}  // namespace
}  // namespace yoke::profile
