// Trains a ResNet on a folder of class folders with every GPU of this machine (or one CPU rank),
// evaluates and saves it.
//
//   ./image_folder TRAIN VALID OUT             OUT: .safetensors or .pt
//   ./image_folder TRAIN VALID OUT 18 1 64     depth 18 in place of 50, one epoch of 90, 64 pixels
//   YOKE_RANKS=2 ./image_folder ...            two ranks, also without a GPU

#include <yoke/yoke.hpp>

#include <cstdio>
#include <cstdlib>

#include <torch/types.h>

namespace transforms = yoke::transforms;

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s TRAIN VALID OUT [DEPTH [EPOCHS [PIXELS]]]\n", argv[0]);
    return 2;
  }
  const int depth = argc > 4 ? std::atoi(argv[4]) : 50;
  const int epochs = argc > 5 ? std::atoi(argv[5]) : 90;
  const int pixels = argc > 6 ? std::atoi(argv[6]) : 224;

  return yoke::run(argc, argv, [&](yoke::World& world) {
    const yoke::data::ImageFolder images(
        argv[1], {transforms::RandomResizedCrop(pixels), transforms::RandomHorizontalFlip()});
    yoke::data::DataLoader loader(images, world, {.batch_size = 32, .seed = 7});  // per rank

    auto model = depth == 18 ? yoke::models::resnet18(images.num_classes())
                             : yoke::models::resnet50(images.num_classes());
    model->to(world.device());
    yoke::DistributedDataParallel parallel(model, world);  // the one line
    yoke::optim::SGD optimizer(parallel.named_parameters(),
                               {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});

    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (const yoke::data::Batch& batch : loader.epoch(epoch)) {
        optimizer.zero_grad();
        auto loss = torch::cross_entropy_loss(parallel(batch.input), batch.target);
        loss.backward();  // averaging over the ranks overlaps with this
        optimizer.step();
      }
    }

    const torch::NoGradGuard no_grad;
    parallel.eval();
    const yoke::data::ImageFolder valid(
        argv[2], {transforms::Resize(pixels * 8 / 7), transforms::CenterCrop(pixels)},
        {.classes = images.classes()});
    yoke::data::DataLoader test(valid, world, yoke::data::evaluation({.batch_size = 32}));
    yoke::train::Means means;  // each image counts once, whatever the number of ranks
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
      yoke::checkpoint::save_state_dict(argv[3], yoke::checkpoint::state_dict(*model));
    }
  });
}
