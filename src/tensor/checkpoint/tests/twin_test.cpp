// Modules of LibTorch against the same ones of Python torch, both ways; state_dict_twin.py is the
// other side.

#include <string>

#include <gtest/gtest.h>

#include "python_twin.hpp"
#include "scratch.hpp"

namespace yoke::checkpoint {
namespace {

/// The values that the twin's fill_counting(net, start) gives.
void fill_from(Net& net, std::int64_t start) {
  fill_counting(net);
  for (auto& [name, tensor] : state_dict(net)) {
    if (name != "last.weight") tensor.add_(start);
  }
}

TEST(CheckpointTwin, B081AndB082StateGoesToPythonStrictlyAndBack) {
  twin::Twin twin;
  Net given;
  fill_from(given, 0);
  Net expected;
  fill_from(expected, 100);

  save_state_dict(twin.path("cpp.pt"), state_dict(given));
  save_state_dict(twin.path("cpp.safetensors"), state_dict(given));
  save_state_dict(twin.path("cpp-bf16.pt"),
                  {{"w", torch::tensor({0.5, 1.5, -2.0}).to(at::kBFloat16)}});
  twin.run("compare");

  for (const char* file : {"py.pt", "ddp.pt", "run.pt", "bf16.pt"}) {
    Net net;
    load_into(net, load_state_dict(twin.path(file)));
    for (const auto& [name, tensor] : state_dict(expected)) {
      EXPECT_TRUE(at::equal(tensor_of(state_dict(net), name), tensor)) << file << " " << name;
    }
  }
  Net net;  // save_model leaves out the second name of a tied weight
  const LoadReport report =
      load_into(net, load_state_dict(twin.path("py.safetensors")), {.strict = false});
  EXPECT_EQ(report.missing.size(), 1U);
  EXPECT_TRUE(at::equal(net.last->weight, expected.last->weight));
}

}  // namespace
}  // namespace yoke::checkpoint
