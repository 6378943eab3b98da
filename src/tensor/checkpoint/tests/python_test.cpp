// Modules of LibTorch against the same ones of Python torch, both ways; python_peer.py is the other
// side.
//
//   checkpoint_python_test PYTHON PEER

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/core/process.hpp"

namespace yoke::checkpoint {
namespace {

std::string python;
std::string peer;

/// Distinct values as in the peer: from `start` on.
void fill_from(Net& net, std::int64_t start) {
  fill_counting(net);
  for (auto& [name, tensor] : state_dict(net)) {
    if (name != "last.weight") tensor.add_(start);
  }
}

class CheckpointPython : public Scratch {
 protected:
  void SetUp() override {
    Scratch::SetUp();
    Net net;
    fill_counting(net);
    save_state_dict(folder_ / "cpp.pt", state_dict(net));
    save_state_dict(folder_ / "cpp.safetensors", state_dict(net));
    save_state_dict(folder_ / "cpp-bf16.pt",
                    {{"w", torch::tensor({0.5, 1.5, -2.0}).to(at::kBFloat16)}});
    result_ = core::run_child(
        {.command = {python, peer, folder_.string()}, .limit = std::chrono::seconds(100)});
  }

  core::ChildResult result_;
};

TEST_F(CheckpointPython, B081AndB082StateGoesToPythonStrictlyAndBack) {
  ASSERT_TRUE(result_.succeeded()) << result_.out << result_.err;
  Net expected;
  fill_from(expected, 100);

  for (const char* file : {"py.pt", "ddp.pt", "run.pt", "bf16.pt"}) {
    Net net;
    load_into(net, load_state_dict(folder_ / file));
    for (const auto& [name, tensor] : state_dict(expected)) {
      EXPECT_TRUE(at::equal(tensor_of(state_dict(net), name), tensor)) << file << " " << name;
    }
  }
  Net net;  // save_model leaves out the second name of a tied weight
  const LoadReport report =
      load_into(net, load_state_dict(folder_ / "py.safetensors"), {.strict = false});
  EXPECT_EQ(report.missing.size(), 1U);
  EXPECT_TRUE(at::equal(net.last->weight, expected.last->weight));
}

}  // namespace
}  // namespace yoke::checkpoint

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return 2;
  yoke::checkpoint::python = argv[1];
  yoke::checkpoint::peer = argv[2];
  if (!std::filesystem::exists(argv[1])) {
    std::printf("no Python with torch at %s: run tools/setup --full\n", argv[1]);
    const char* required = std::getenv("YOKE_REQUIRE_FULL");
    return required != nullptr && std::string(required) == "1" ? 1 : 77;
  }
  return RUN_ALL_TESTS();
}
