// Trains a small CNN on Fashion-MNIST with every GPU of this machine (or one CPU rank), evaluates
// and saves it.
//
//   ./fashion_mnist                 data set from /usr/share, weights to model.safetensors
//   ./fashion_mnist DATA OUT        DATA: a folder of IDX files; OUT: .safetensors or .pt
//   YOKE_RANKS=2 ./fashion_mnist    two ranks, also without a GPU

#include <yoke/yoke.hpp>

#include <cstdio>
#include <string>

#include <torch/types.h>

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "fashion-mnist";
  const std::string out = argc > 2 ? argv[2] : "model.safetensors";

  return yoke::run(argc, argv, [&](yoke::World& world) {
    auto model = yoke::models::small_cnn();
    model->to(world.device());
    yoke::DistributedDataParallel parallel(model, world);  // the one line
    yoke::optim::SGD optimizer(parallel.named_parameters(), {.lr = 0.1, .momentum = 0.9});
    yoke::data::DataLoader loader(yoke::data::IdxImages(data), world,
                                  {.batch_size = 64, .seed = 7});  // per rank

    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const yoke::data::Batch& batch : loader.epoch(epoch)) {
        optimizer.zero_grad();
        auto loss = torch::cross_entropy_loss(parallel(batch.input), batch.target);
        loss.backward();  // averaging over the ranks overlaps with this
        optimizer.step();
      }
    }

    const torch::NoGradGuard no_grad;
    parallel.eval();
    yoke::data::DataLoader test(yoke::data::IdxImages(data, yoke::data::Split::test), world,
                                yoke::data::evaluation({.batch_size = 250}));
    yoke::train::Means means;  // each sample counts once, whatever the number of ranks
    for (const yoke::data::Batch& batch : test.epoch(0)) {
      if (batch.rows() == 0) continue;
      for (const auto& sum : yoke::train::accuracy(parallel(batch.input), batch.target)) {
        means.add(sum);
      }
    }
    for (const auto& [name, value] : means.over(world.host_group())) {
      if (world.is_main()) std::printf("%s %.4f\n", name.c_str(), value);
    }
    if (world.is_main()) {
      yoke::checkpoint::save_state_dict(out, yoke::checkpoint::state_dict(*model));
    }
  });
}
