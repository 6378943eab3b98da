#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::comm {
class World;
}

namespace yoke::train {

struct CaptureOptions {
  int warmup = 3;          // eager calls for each set of shapes before it is captured
  std::size_t shapes = 4;  // sets of shapes that are kept captured; further ones run eagerly
};

// A function of tensors on one card that is run by replaying a CUDA graph of it.
//
// The first calls run eagerly, on the stream that is captured later: libraries make their handles,
// the gradient engine learns its order, optimizers make their state. Then the function runs once
// under capture, its arguments lying in slots of fixed memory, and every further call with such
// arguments copies them into the slots and replays. What the function does on the host happens at
// capture only: what changes from call to call must lie on the device.
//
// A function that cannot be captured (it reads from the device, its shapes change within) goes on
// eagerly, with one line that says why. On the CPU everything is eager.
//
// Ranks: collective; all give arguments of the same shapes in the same order. A capture that fails
// on one is dropped by all.
// Streams: the caller's; runs on its own and orders both. Threads: one at a time.
// Cost: a copy of the arguments and of the results; the memory of one call a set of shapes, less
// what they share.
class CapturedFunction {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Function = std::function<Tensors(const Tensors&)>;

  CapturedFunction(Function function, comm::World& world, CaptureOptions options = {});
  ~CapturedFunction();
  CapturedFunction(const CapturedFunction&) = delete;
  CapturedFunction& operator=(const CapturedFunction&) = delete;

  // What the function returns for these arguments, in memory of its own.
  Tensors operator()(const Tensors& arguments);

  // Calls that replayed, and why nothing is captured any more (empty: nothing stands against it).
  [[nodiscard]] std::size_t replays() const noexcept;
  [[nodiscard]] const std::string& obstacle() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::train
