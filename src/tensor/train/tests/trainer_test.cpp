#include "yoke/train/trainer.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "toys.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/error.hpp"
#include "yoke/optim/sgd.hpp"

namespace yoke::train {
namespace {

using comm::run_local_ranks;
using comm::World;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using toys::batches_of;
using toys::Net;
using toys::Slope;

World alone() { return World::of(comm::alone_group()); }

at::Tensor flat(const torch::nn::Module& model) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : model.parameters())
    parts.push_back(parameter.detach().flatten());
  return at::cat(parts);
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

/// Trains a Net on 41 points and returns its weights: 41 = 3 * 12 + 5, so the last step is short.
at::Tensor trained(World& world, std::int64_t batch_size, const TrainerOptions& options) {
  auto net = std::make_shared<Net>();
  data::DataLoader loader(toys::points(41), world, batches_of(batch_size));
  optim::SGD optimizer(net->named_parameters(), {.lr = 0.5, .momentum = 0.9});
  Trainer trainer(net, world, options);
  (void)trainer.fit(loader, optimizer);
  return flat(*net);
}

at::Tensor trained_over(int ranks, std::int64_t batch_size, const TrainerOptions& options) {
  std::vector<at::Tensor> weights(static_cast<std::size_t>(ranks));
  run_local_ranks(ranks, [&](World& world) {
    weights[static_cast<std::size_t>(world.rank())] = trained(world, batch_size, options);
  });
  for (const at::Tensor& other : weights) EXPECT_TRUE(other.equal(weights[0]));
  return weights[0];
}

struct Form {
  std::string called;
  int ranks;
  std::int64_t batch_size;  // per rank; times ranks and micro-batches 12
  std::int64_t accumulate;
  Parallel parallel;
  std::vector<int> device_ids;
};

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.called; }

class EveryForm : public ::testing::TestWithParam<Form> {};

TEST_P(EveryForm, TrainsAsOneRankDoesOnTheJoinedBatch) {
  const Form& form = GetParam();
  World world = alone();
  const at::Tensor expected = trained(world, 12, {.parallel = Parallel::none, .epochs = 2});

  const at::Tensor weights = trained_over(form.ranks, form.batch_size,
                                          {.parallel = form.parallel,
                                           .device_ids = form.device_ids,
                                           .epochs = 2,
                                           .accumulate = form.accumulate});

  EXPECT_LE(relative_difference(weights, expected), 1e-12);  // float64; sums in another order
}

INSTANTIATE_TEST_SUITE_P(
    Trainer, EveryForm,
    ::testing::Values(Form{"OneRank", 1, 12, 1, Parallel::ddp, {}},
                      Form{"TwoRanks", 2, 6, 1, Parallel::ddp, {}},
                      Form{"ThreeRanks", 3, 4, 1, Parallel::ddp, {}},
                      Form{"OneRankThreeMicroBatches", 1, 4, 3, Parallel::ddp, {}},
                      Form{"TwoRanksThreeMicroBatches", 2, 2, 3, Parallel::ddp, {}},
                      Form{"NoWrapperThreeMicroBatches", 1, 4, 3, Parallel::none, {}},
                      Form{"ThreeReplicas", 1, 12, 1, Parallel::dp, {0, 1, 2}},
                      Form{"TwoReplicasThreeMicroBatches", 1, 4, 3, Parallel::dp, {0, 1}}),
    [](const auto& row) { return row.param.called; });

/// The mean square of the samples' numbers: right only if each sample counts once.
std::vector<MetricSum> mean_square(const at::Tensor& output, const at::Tensor&) {
  return {{"square", (output * output).sum(), static_cast<double>(output.size(0))}};
}

double expected_mean_square(std::int64_t size) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(i * i);
  return sum / static_cast<double>(size);
}

TEST(Trainer, EvaluationCountsEachSampleOnceOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3}) {
    for (const std::int64_t size : {1, 2, 7, 20}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(size) + " samples");
      run_local_ranks(ranks, [&](World& world) {
        auto slope = std::make_shared<Slope>();
        slope->w.data().fill_(1.0);
        data::DataLoader loader(toys::numbers(size), world, data::evaluation(batches_of(3)));
        Trainer trainer(slope, world, {.loss = toys::mean_output, .metrics = mean_square});

        const NamedValues values = trainer.evaluate(loader);

        ASSERT_EQ(values.size(), 2U);
        EXPECT_DOUBLE_EQ(values[0].second, static_cast<double>(size - 1) / 2) << values[0].first;
        EXPECT_DOUBLE_EQ(values[1].second, expected_mean_square(size)) << values[1].first;
      });
    }
  }
}

TEST(Trainer, EachEpochSeesEachSampleOnceOverAllRanks) {
  std::mutex mutex;
  std::map<double, int> seen;
  const auto note = [&](const at::Tensor& output, const at::Tensor& target) {
    const std::lock_guard lock(mutex);
    for (std::int64_t row = 0; row < output.size(0); ++row) ++seen[target[row].item<double>()];
    return output.mean();
  };

  run_local_ranks(3, [&](World& world) {
    const at::Tensor ids = at::arange(10);
    data::DataLoader loader(data::TensorDataset(at::ones({10, 1}, at::kDouble), ids, 10), world,
                            batches_of(2));
    auto slope = std::make_shared<Slope>();
    optim::SGD optimizer(slope->named_parameters(), {.lr = 0.1});
    Trainer trainer(slope, world, {.loss = note, .epochs = 4});
    (void)trainer.fit(loader, optimizer);
  });

  EXPECT_EQ(seen.size(), 10U);
  for (const auto& [id, times] : seen) EXPECT_EQ(times, 4) << "sample " << id;
}

TEST(Trainer, B072ScheduleFollowsOptimizerStepsNotRanksOrMicroBatches) {
  for (const int ranks : {1, 2, 4}) {
    for (const std::int64_t accumulate : {1, 2}) {
      std::vector<double> rates;
      run_local_ranks(ranks, [&](World& world) {
        data::DataLoader loader(toys::numbers(8 * ranks * accumulate), world, batches_of(1));
        auto slope = std::make_shared<Slope>();
        optim::SGD optimizer(slope->named_parameters(), {.lr = 1.0});
        TrainerOptions options{.loss = toys::mean_output, .accumulate = accumulate};
        options.schedule = optim::Schedule(
            {.shape = optim::Shape::linear, .total_steps = optimizer_steps(loader, options)});
        if (world.is_main())
          options.on_step = [&](const StepReport& report) { rates.push_back(report.lr); };
        Trainer trainer(slope, world, options);
        (void)trainer.fit(loader, optimizer);
      });

      ASSERT_EQ(rates.size(), 8U) << ranks << " ranks, accumulation " << accumulate;
      for (std::size_t k = 0; k < 8; ++k)
        EXPECT_DOUBLE_EQ(rates[k], 1.0 - static_cast<double>(k) / 8);
    }
  }
}

TEST(Trainer, B020StopThatOneRankAskedForStopsAllAfterTheSameStep) {
  std::mutex mutex;
  std::vector<std::int64_t> steps;

  run_local_ranks(2, [&](World& world) {
    data::DataLoader loader(toys::numbers(6), world, batches_of(1));
    auto slope = std::make_shared<Slope>();
    optim::SGD optimizer(slope->named_parameters(), {.lr = 0.1});
    // Rank 0 alone has seen that validation got worse (1.0, then 1.1) with patience 1.
    Best validation({.metric = "loss"});
    const auto rank_0_looks = [&](const EpochReport& report) {
      if (!world.is_main()) return false;
      validation.update({{"loss", report.epoch == 0 ? 1.0 : 1.1}});
      return validation.evaluations_since() >= 1;
    };
    Trainer trainer(slope, world,
                    {.loss = toys::mean_output, .epochs = 9, .on_epoch = rank_0_looks});
    const TrainResult result = trainer.fit(loader, optimizer);
    const std::lock_guard lock(mutex);
    steps.push_back(result.steps);
    EXPECT_EQ(result.reason, "stopped by on_epoch");
  });

  EXPECT_THAT(steps, ElementsAre(6, 6));  // two epochs of three steps
}

TEST(Trainer, EarlyStopEndsAfterItsPatience) {
  World world = alone();
  data::DataLoader loader(toys::numbers(4), world, batches_of(4));
  data::DataLoader validation(toys::numbers(4), world, data::evaluation(batches_of(4)));
  auto slope = std::make_shared<Slope>();
  optim::SGD optimizer(slope->named_parameters(), {.lr = 0.0});  // nothing ever gets better
  Trainer trainer(slope, world, {.loss = toys::mean_output, .epochs = 50, .early_stop = 3});

  const TrainResult result = trainer.fit(loader, optimizer, &validation);

  EXPECT_EQ(result.epochs, 4);  // the first one is the best, three without a better one
  EXPECT_EQ(result.reason, "early stop");
}

TEST(Trainer, KeepBestLeavesTheBestWeightsNotTheLast) {
  World world = alone();
  data::DataLoader loader(toys::numbers(2), world, batches_of(2));  // mean input 0.5
  data::DataLoader validation(toys::numbers(2), world, data::evaluation(batches_of(2)));
  auto slope = std::make_shared<Slope>();
  optim::SGD optimizer(slope->named_parameters(), {.lr = 1.0});
  int improvements = 0;
  // Each epoch moves w by -0.5; the watched value |w + 1.5| is least after the third.
  const auto distance = [&](const at::Tensor& output, const at::Tensor&) -> std::vector<MetricSum> {
    return {{"distance", (output[1] + 1.5).abs().sum(), 1.0}};
  };
  Trainer trainer(slope, world,
                  {.loss = toys::mean_output,
                   .metrics = distance,
                   .epochs = 6,
                   .monitor = {.metric = "distance"},
                   .keep_best = true,
                   .on_best = [&] { ++improvements; }});

  const TrainResult result = trainer.fit(loader, optimizer, &validation);

  EXPECT_DOUBLE_EQ(slope->w.item<double>(), -1.5);
  EXPECT_EQ(improvements, 3);
  EXPECT_EQ(result.evaluation.back(), (std::pair<std::string, double>{"distance", 0.0}));
}

TEST(Trainer, EmaLeavesTheAverageOfTheWeights) {
  World world = alone();
  data::DataLoader loader(toys::numbers(6), world,
                          {.batch_size = 2, .shuffle = false, .num_workers = 0});
  auto slope = std::make_shared<Slope>();
  optim::SGD optimizer(slope->named_parameters(), {.lr = 0.1});
  Trainer trainer(slope, world, {.loss = toys::mean_output, .ema = 0.75});

  (void)trainer.fit(loader, optimizer);

  double w = 0;
  double average = 0;
  for (const double gradient : {0.5, 2.5, 4.5}) {
    w -= 0.1 * gradient;
    average = 0.75 * average + 0.25 * w;
  }
  EXPECT_NEAR(slope->w.item<double>(), average, 1e-15);
}

/// Refuses nothing, and gives NaN for the sample whose number is 5.
at::Tensor nan_at_5(const at::Tensor& output, const at::Tensor& target) {
  const bool bad = target.eq(5).any().item<bool>();
  return bad ? output.mean() * std::numeric_limits<double>::quiet_NaN() : output.mean();
}

TEST(Trainer, LossThatIsNotANumberNamesStepRankAndSamplesAndStopsAllRanks) {
  const auto train = [](World& world) {
    data::DataLoader loader(data::TensorDataset(at::ones({8, 1}, at::kDouble), at::arange(8), 8),
                            world, {.batch_size = 2, .shuffle = false, .num_workers = 0});
    auto slope = std::make_shared<Slope>();
    optim::SGD optimizer(slope->named_parameters(), {.lr = 0.1});
    Trainer trainer(slope, world, {.loss = nan_at_5, .epochs = 3});
    (void)trainer.fit(loader, optimizer);
  };

  try {
    run_local_ranks(2, train);
    FAIL() << "training went on";
  } catch (const Error& error) {
    // Steps of 4 samples over 2 ranks: samples 4 and 5 are rank 0's in the second.
    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 0"), HasSubstr("step 2 "), HasSubstr("nan"),
                                       HasSubstr("samples 4, 5")));
  }
}

/// Keeps what it is told.
class Recorder final : public Logger {
 public:
  void begin(const RunFacts& run) override { facts = run; }
  void scalars(const Scalars& record) override { records.push_back(record); }
  void end(const RunEnd& end) override { ended = end; }

  RunFacts facts;
  std::vector<Scalars> records;
  RunEnd ended;
};

TEST(Trainer, LoggersGetExactMeansEveryLogEverySteps) {
  auto recorder = std::make_shared<Recorder>();

  run_local_ranks(2, [&](World& world) {
    data::DataLoader loader(toys::numbers(10), world,
                            {.batch_size = 2, .shuffle = false, .num_workers = 0});
    auto slope = std::make_shared<Slope>();
    slope->w.data().fill_(1.0);
    optim::SGD optimizer(slope->named_parameters(), {.lr = 0.0});
    Trainer trainer(slope, world,
                    {.loss = toys::mean_output, .log_every = 2, .loggers = {recorder}});
    (void)trainer.fit(loader, optimizer);
  });

  // Three steps of 4, 4 and 2 samples; the loss of a sample is its number.
  ASSERT_EQ(recorder->records.size(), 2U);
  EXPECT_EQ(recorder->records[0].of, Scalars::Of::steps);
  EXPECT_EQ(recorder->records[0].step, 2);
  EXPECT_DOUBLE_EQ(recorder->records[0].values[0].second, 3.5);  // samples 0 to 7
  EXPECT_EQ(recorder->records[1].of, Scalars::Of::epoch);
  EXPECT_DOUBLE_EQ(recorder->records[1].values[0].second, 4.5);  // samples 0 to 9
  EXPECT_EQ(recorder->facts.ranks, 2);
  EXPECT_EQ(recorder->facts.steps_per_epoch, 3);
  EXPECT_EQ(recorder->ended.steps, 3);
}

TEST(Trainer, MaxStepsEndsInTheMiddleOfAnEpoch) {
  World world = alone();
  data::DataLoader loader(toys::numbers(8), world, batches_of(1));
  auto slope = std::make_shared<Slope>();
  optim::SGD optimizer(slope->named_parameters(), {.lr = 0.1});
  const TrainerOptions options{.loss = toys::mean_output, .epochs = 4, .max_steps = 11};
  Trainer trainer(slope, world, options);

  const TrainResult result = trainer.fit(loader, optimizer);

  EXPECT_EQ(optimizer_steps(loader, options), 11);
  EXPECT_EQ(result.steps, 11);
  EXPECT_EQ(result.samples, 11);
  EXPECT_EQ(result.reason, "max steps");
}

TEST(Trainer, ClippedGradientsHaveTheNormAskedFor) {
  World world = alone();
  data::DataLoader loader(toys::numbers(2), world,
                          {.batch_size = 1, .shuffle = false, .num_workers = 0});
  auto slope = std::make_shared<Slope>();
  optim::SGD optimizer(slope->named_parameters(), {.lr = 1.0});
  // Gradients 0 and then 1000 * 1; the second is cut to 0.25.
  const auto steep = [](const at::Tensor& output, const at::Tensor&) {
    return output.mean() * 1000;
  };
  Trainer trainer(slope, world, {.loss = steep, .clip_norm = 0.25});

  (void)trainer.fit(loader, optimizer);

  EXPECT_NEAR(slope->w.item<double>(), -0.25, 1e-6);  // the norm is divided by norm + 1e-6
}

TEST(Trainer, SeveralRanksWithoutAWrapperAreRefused) {
  const auto train = [](World& world) {
    Trainer trainer(std::make_shared<Slope>(), world, {.parallel = Parallel::none});
  };

  EXPECT_THROW(run_local_ranks(2, train), Error);
}

TEST(Trainer, WatchingAValueThatIsNotMeasuredNamesTheNearest) {
  World world = alone();
  data::DataLoader loader(toys::points(4), world, batches_of(4));
  auto net = std::make_shared<Net>();
  optim::SGD optimizer(net->named_parameters(), {.lr = 0.1});
  Trainer trainer(net, world, {.monitor = {.metric = "acuracy"}, .early_stop = 1});

  try {
    (void)trainer.fit(loader, optimizer, &loader);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.hint(), HasSubstr("accuracy"));
  }
}

TEST(Trainer, B074OutOfMemoryIsOneErrorThatSaysWhatToChange) {
  World world = alone();
  auto net = std::make_shared<Net>();
  data::DataLoader loader(toys::points(8), world, batches_of(4));
  optim::SGD optimizer(net->named_parameters(), {.lr = 0.1});
  const LossFunction loss = [](const at::Tensor&, const at::Tensor&) -> at::Tensor {
    TORCH_CHECK_WITH(OutOfMemoryError, false,
                     "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity");
  };
  Trainer trainer(net, world, {.loss = loss});
  try {
    (void)trainer.fit(loader, optimizer);
    FAIL() << "it trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::cuda);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 0"), HasSubstr("batches of 4"),
                                       HasSubstr("Tried to allocate 2.00 GiB")));
    EXPECT_THAT(error.what(), HasSubstr("--global-batch"));
  }
}

}  // namespace
}  // namespace yoke::train
