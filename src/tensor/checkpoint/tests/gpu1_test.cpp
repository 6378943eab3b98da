#include <map>

#include <gtest/gtest.h>

#include "scratch.hpp"

namespace yoke::checkpoint {
namespace {

class CheckpointGpu : public Scratch {};

TEST_F(CheckpointGpu, AModuleOnACardIsSavedTiedAndLoadedBackToTheCard) {
  Net from;
  fill_counting(from);
  StateDict on_card;
  std::map<const void*, at::Tensor> moved;  // tied tensors stay tied on the card
  for (const auto& [name, tensor] : state_dict(from)) {
    at::Tensor& copy = moved[tensor.data_ptr()];
    if (!copy.defined()) copy = tensor.to(at::kCUDA);
    on_card.emplace_back(name, copy);
  }
  Net to;
  to.to(at::kCUDA);

  save_state_dict(folder_ / "m.pt", on_card);
  const StateDict read = load_state_dict(folder_ / "m.pt");
  load_into(to, read);

  EXPECT_EQ(tensor_of(read, "first.weight").data_ptr(), tensor_of(read, "last.weight").data_ptr());
  for (const auto& [name, tensor] : state_dict(from)) {
    EXPECT_TRUE(at::equal(tensor_of(state_dict(to), name).cpu(), tensor)) << name;
    EXPECT_TRUE(tensor_of(state_dict(to), name).is_cuda()) << name;
  }
}

}  // namespace
}  // namespace yoke::checkpoint
