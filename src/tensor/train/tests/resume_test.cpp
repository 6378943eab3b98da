// A run that was interrupted and goes on, against one that was not.

#include <stdlib.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>

#include "toys.hpp"
#include "yoke/checkpoint/manager.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/optim/adamw.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {
namespace {

namespace fs = std::filesystem;

/// What has a state of its own: dropout (random numbers), batch norm (buffers of each rank).
class Stateful : public torch::nn::Cloneable<Stateful> {
 public:
  explicit Stateful(double drop) : drop_(drop) { Stateful::reset(); }
  void reset() override {
    net = register_module("net", std::make_shared<toys::Net>());
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    dropout = register_module("dropout", torch::nn::Dropout(drop_));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) {
    return norm->forward(net->forward(dropout->forward(input)));
  }

  std::shared_ptr<toys::Net> net;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Dropout dropout = nullptr;

 private:
  double drop_;
};

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

/// In memory: every save waits for the disk.
fs::path make_folder() {
  const fs::path memory = "/dev/shm";
  const fs::path parent = fs::exists(memory) ? memory : fs::temp_directory_path();
  std::string pattern = (parent / "yoke-resume-XXXXXX").string();
  return ::mkdtemp(pattern.data());
}

struct Form {
  std::string called;
  int ranks = 1;
  std::int64_t every = 1;
  std::int64_t accumulate = 1;
  double ema = 0;
  bool keep_best = false;
};

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.called; }

struct Outcome {
  TrainResult result;
  std::vector<at::Tensor> state;  // of rank 0
};

class Resume : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override { folder_ = make_folder(); }
  void TearDown() override { fs::remove_all(folder_); }

  /// Trains; every rank stops by an exception after step `stop_at`, unless that is 0.
  Outcome train(bool resume, std::int64_t stop_at, int ranks, bool checkpoints = true) const {
    Outcome outcome;
    comm::run_local_ranks(ranks, [&](comm::World& world) {
      // Ranks that are threads share one generator, so that only one may draw from it.
      auto model = std::make_shared<Stateful>(ranks == 1 ? 0.3 : 0.0);
      data::DataLoader loader(toys::points(41), world, toys::batches_of(6 / ranks));
      data::DataLoader validation(toys::points(15), world, data::evaluation(toys::batches_of(5)));
      optim::AdamW optimizer(model->named_parameters(), {.lr = 0.01});
      TrainerOptions options{.epochs = 3,
                             .accumulate = GetParam().accumulate,
                             .seed = 5,
                             .ema = GetParam().ema,
                             .keep_best = GetParam().keep_best};
      if (checkpoints) {
        options.checkpoints =
            CheckpointOptions{.folder = folder_, .every = GetParam().every, .resume = resume};
      }
      options.on_step = [&](const StepReport& report) {
        if (report.step == stop_at) throw Interrupted();
      };
      const TrainResult result = Trainer(model, world, options).fit(loader, optimizer, &validation);
      if (!world.is_main()) return;
      outcome.result = result;
      for (const at::Tensor& tensor : model->parameters()) outcome.state.push_back(tensor.clone());
      for (const at::Tensor& tensor : model->buffers()) outcome.state.push_back(tensor.clone());
    });
    return outcome;
  }

  static void expect_same(const Outcome& ours, const Outcome& undisturbed) {
    ASSERT_EQ(ours.state.size(), undisturbed.state.size());
    for (std::size_t i = 0; i < ours.state.size(); ++i)
      EXPECT_TRUE(at::equal(ours.state[i], undisturbed.state[i])) << "tensor " << i;
    EXPECT_EQ(ours.result.steps, undisturbed.result.steps);
    EXPECT_EQ(ours.result.samples, undisturbed.result.samples);
    EXPECT_EQ(ours.result.epochs, undisturbed.result.epochs);
    EXPECT_EQ(ours.result.loss, undisturbed.result.loss);
    EXPECT_EQ(ours.result.evaluation, undisturbed.result.evaluation);
  }

  fs::path folder_;
};

TEST_P(Resume, GoesOnToTheBitsOfAnUndisturbedRunFromAnyStep) {
  const int ranks = GetParam().ranks;
  const Outcome undisturbed = train(false, 0, ranks, /*checkpoints=*/false);
  const std::int64_t all = undisturbed.result.steps;
  const std::int64_t epoch = all / 3;
  for (const std::int64_t stop_at : {std::int64_t{1}, epoch - 1, epoch, epoch + 1, all / 2, all}) {
    SCOPED_TRACE("stopped after step " + std::to_string(stop_at));
    fs::remove_all(folder_);
    EXPECT_THROW(train(true, stop_at, ranks), Interrupted);

    expect_same(train(true, 0, ranks), undisturbed);
  }
}

TEST_P(Resume, TwiceInARowAsWell) {
  const int ranks = GetParam().ranks;
  const Outcome undisturbed = train(false, 0, ranks, /*checkpoints=*/false);
  const std::int64_t half = undisturbed.result.steps / 2;
  EXPECT_THROW(train(true, half, ranks), Interrupted);
  EXPECT_THROW(train(true, half + 2, ranks), Interrupted);

  expect_same(train(true, 0, ranks), undisturbed);
}

TEST(Stop, B030OneRankThatIsToldStopsAllAfterTheSameStep) {
  const fs::path folder = make_folder();
  std::array<TrainResult, 2> results;
  comm::run_local_ranks(2, [&](comm::World& world) {
    auto model = std::make_shared<toys::Net>();
    data::DataLoader loader(toys::points(40), world, toys::batches_of(4));
    optim::AdamW optimizer(model->named_parameters(), {.lr = 0.01});
    std::int64_t step = 0;
    TrainerOptions options{.epochs = 2};
    options.checkpoints = CheckpointOptions{.folder = folder, .every = 90'000};
    options.on_step = [&](const StepReport& report) { step = report.step; };
    options.stop_signal = [&] { return world.rank() == 1 && step >= 3 ? SIGTERM : 0; };
    options.stop_agreement_seconds = 0;
    results.at(static_cast<std::size_t>(world.rank())) =
        Trainer(model, world, options).fit(loader, optimizer);
  });

  for (const TrainResult& result : results) {
    EXPECT_EQ(result.steps, 3);
    EXPECT_EQ(result.stopped_by, SIGTERM);
    EXPECT_EQ(result.reason, "stopped by SIGTERM");
  }
  EXPECT_TRUE(fs::exists(folder / checkpoint::folder_name(3) / "manifest.json"));
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Forms, Resume,
                         ::testing::Values(Form{"OneRank", 1}, Form{"TwoRanks", 2},
                                           Form{"EveryThirdStep", 1, 3}, Form{"EachEpoch", 2, 0},
                                           Form{"ThreeMicroBatches", 1, 1, 3},
                                           Form{"AveragedWeights", 2, 2, 1, 0.9},
                                           Form{"TheBestWeights", 1, 2, 1, 0.9, true}),
                         [](const auto& row) { return row.param.called; });

}  // namespace
}  // namespace yoke::train
