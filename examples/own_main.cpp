// A program that keeps its own main: an MPI program, a debugger session, a larger application.
//
//   ./own_main                             alone
//   yoke launch --ranks 2 -- ./own_main    two ranks; or torchrun --no-python, mpirun, srun

#include <yoke/yoke.hpp>

#include <cstdio>
#include <exception>

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

int main() try {
  yoke::World world =
      yoke::World::from_environment();  // a collective: returns when all ranks are there

  torch::nn::Linear model(1, 1);
  model->to(world.device());
  yoke::DistributedDataParallel parallel(model, world);
  const auto input = torch::full({2, 1}, world.rank() + 1.0, world.device());
  parallel(input).mean().backward();

  // Every rank holds the mean over all rows: (1 + 2 + ... + size) / size.
  std::printf("rank %d of %d: gradient %.2f\n", world.rank(), world.size(),
              model->weight.grad().item<double>());
  return 0;
} catch (const std::exception& error) {
  return yoke::report(error);  // the launcher names the rank that failed first
}
