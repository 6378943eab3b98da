#include "yoke/parallel/distributed_data_parallel.hpp"

#include <atomic>
#include <string>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "toys.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/error.hpp"
#include "yoke/parallel/mean.hpp"

namespace yoke::parallel {
namespace {

using comm::run_local_ranks;
using comm::World;
using toys::grad_of;
using toys::row;
using toys::Toy2;
using Ddp = DistributedDataParallel<std::shared_ptr<Toy2>>;

// The case book's inputs: rank 0 gets 1, rank 1 gets 3.
double input_of(const World& world) { return world.rank() == 0 ? 1.0 : 3.0; }

TEST(Ddp, B001UnusedParametersNeedNoFlagAndAreNamed) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);

    parallel(row(world.rank() == 0 ? 1.0 : 2.0)).sum().backward();

    EXPECT_DOUBLE_EQ(grad_of(model->a), 1.5);
    EXPECT_FALSE(model->b->weight.grad().defined());
    EXPECT_EQ(parallel.report().unused, std::vector<std::string>{"b.weight"});
  });
}

struct HeadModel : torch::nn::Module {
  HeadModel() {
    stem = register_module("stem", torch::nn::Linear(2, 2));
    head = register_module("head", std::make_shared<Aux>());
    out = register_module("out", torch::nn::Linear(2, 1));
  }
  struct Aux : torch::nn::Module {
    Aux() { aux = register_module("aux", torch::nn::Linear(2, 2)); }
    torch::nn::Linear aux = nullptr;
  };
  at::Tensor forward(const at::Tensor& x) { return out->forward(stem->forward(x)); }
  torch::nn::Linear stem = nullptr;
  std::shared_ptr<Aux> head;
  torch::nn::Linear out = nullptr;
};

TEST(Ddp, B002UnusedParametersAreNamedInFullInEachStep) {
  run_local_ranks(2, [](World& world) {
    DistributedDataParallel parallel(std::make_shared<HeadModel>(), world);

    for (int step = 0; step < 2; ++step) {
      parallel(at::ones({3, 2})).sum().backward();

      auto unused = parallel.report().unused;
      std::sort(unused.begin(), unused.end());
      EXPECT_EQ(unused, (std::vector<std::string>{"head.aux.bias", "head.aux.weight"}));
    }
  });
}

TEST(Ddp, B004NoSyncActsOnForward) {
  run_local_ranks(2, [](World& world) {
    const double x = input_of(world);
    {
      auto model = std::make_shared<Toy2>();
      Ddp parallel(model, world);
      at::Tensor out;
      {
        const auto local = parallel.no_sync();
        out = parallel(row(x));
      }
      out.sum().backward();
      EXPECT_DOUBLE_EQ(grad_of(model->a), x) << "(i) forward inside, backward outside stays local";
    }
    {
      auto model = std::make_shared<Toy2>();
      Ddp parallel(model, world);
      const at::Tensor out = parallel(row(x));
      {
        const auto local = parallel.no_sync();
        out.sum().backward();
      }
      EXPECT_DOUBLE_EQ(grad_of(model->a), 2.0) << "(ii) forward outside, backward inside averages";
    }
    {
      auto model = std::make_shared<Toy2>();
      Ddp parallel(model, world);
      {
        const auto local = parallel.no_sync();
        parallel(row(x)).sum().backward();
      }
      parallel(row(10 * x)).sum().backward();
      EXPECT_DOUBLE_EQ(grad_of(model->a), 22.0) << "(iii) the sum is averaged once";
      EXPECT_EQ(parallel.report().collectives, 1U);
    }
  });
}

TEST(Ddp, B005AReplacedParameterIsNamed) {
  std::atomic<int> refused{0};
  run_local_ranks(2, [&refused](World& world) {
    auto model = std::make_shared<Toy2>();
    Ddp parallel(model, world);
    model->a =
        model->replace_module("a", torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false)));
    try {
      parallel(row(input_of(world))).sum().backward();
      ADD_FAILURE() << "different gradients left backward in silence";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_NE(error.message().find("a.weight"), std::string::npos) << error.what();
      EXPECT_NE(error.message().find("changed after wrapping"), std::string::npos) << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

TEST(Ddp, AParameterReplacedAfterManyStepsIsNamedInBackward) {
  std::atomic<int> refused{0};
  run_local_ranks(2, [&refused](World& world) {
    auto model = std::make_shared<Toy2>();
    Ddp parallel(model, world);
    for (int step = 0; step < 3; ++step) parallel(row(1)).sum().backward();
    model->a->weight = model->a->register_parameter("weight2", at::ones({1, 1}));
    try {
      parallel(row(1)).sum().backward();
      ADD_FAILURE() << "a replaced parameter went unnoticed";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("changed after wrapping"), std::string::npos) << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

TEST(Ddp, B006AParameterUsedOnOneRankIsAveragedOverBoth) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>(world.rank() == 0 ? "a" : "b");
    Ddp parallel(model, world);
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();

      parallel(row(world.rank() == 0 ? 1.0 : 2.0)).sum().backward();

      EXPECT_DOUBLE_EQ(grad_of(model->a), 0.5);
      EXPECT_DOUBLE_EQ(grad_of(model->b), 1.0);
      EXPECT_TRUE(parallel.report().unused.empty());
      EXPECT_EQ(parallel.report().unused_here.size(), 1U);
    }
  });
}

TEST(Ddp, B008RanksStartFromTheWeightsOfRankZero) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>();
    {
      const at::NoGradGuard no_grad;
      model->a->weight.fill_(7.0 + world.rank());
    }
    Ddp parallel(model, world);

    EXPECT_DOUBLE_EQ(model->a->weight.item<double>(), 7.0);
  });
}

struct NormModel : torch::nn::Module {
  NormModel() { norm = register_module("norm", torch::nn::BatchNorm1d(1)); }
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x); }
  torch::nn::BatchNorm1d norm = nullptr;
};

TEST(Ddp, B011BuffersAreRankZerosBeforeEvaluation) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<NormModel>();
    DistributedDataParallel parallel(model, world);
    const at::Tensor batch =
        (world.rank() == 0 ? at::tensor({0.0F, 2.0F}) : at::tensor({10.0F, 14.0F})).view({2, 1});
    for (int step = 0; step < 2; ++step) parallel(batch).sum().backward();

    parallel.eval();

    // mean 1, unbiased variance 2 on rank 0: 0.1 * (1 + 0.9), 0.9 * (0.9 + 0.2) + 0.2
    EXPECT_NEAR(model->norm->running_mean.item<double>(), 0.19, 1e-6);
    EXPECT_NEAR(model->norm->running_var.item<double>(), 1.19, 1e-6);
    EXPECT_FALSE(model->is_training());
  });
}

struct ScaledModel : torch::nn::Module {
  ScaledModel() {
    w = register_parameter("w", at::ones({1}));
    k = register_buffer("k", at::full({1}, 2.0));
  }
  at::Tensor forward(const at::Tensor& x) { return w * k * x; }
  at::Tensor w;
  at::Tensor k;
};

TEST(Ddp, B012TwoForwardsBeforeOneBackwardKeepTheirBuffers) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<ScaledModel>();
    DistributedDataParallel parallel(model, world);
    const double first = world.rank() == 0 ? 1.0 : 2.0;
    const double second = world.rank() == 0 ? 3.0 : 4.0;

    const at::Tensor out = parallel(row(first)) + parallel(row(second));
    out.sum().backward();

    EXPECT_DOUBLE_EQ(model->w.grad().item<double>(), 10.0);
  });
}

TEST(Ddp, B015ARankWithoutDataTakesPartInIdleSteps) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);
    parallel(row(input_of(world))).sum().backward();
    EXPECT_DOUBLE_EQ(grad_of(model->a), 2.0);
    model->zero_grad();

    if (world.rank() == 0) {
      parallel.idle_step();
    } else {
      parallel(row(3.0)).sum().backward();
    }

    EXPECT_DOUBLE_EQ(grad_of(model->a), 3.0) << "the mean over the rows that there are";
  });
}

TEST(Ddp, B015ARankThatEndsWithoutIdleStepsIsNamed) {
  std::string message;
  run_local_ranks(2, [&message](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);
    parallel(row(1)).sum().backward();
    if (world.rank() == 0) return;
    try {
      parallel(row(1)).sum().backward();
    } catch (const Error& error) {
      message = error.what();
    }
  });
  EXPECT_NE(message.find("rank 0"), std::string::npos) << message;
}

TEST(Ddp, B016ACountWeighsTokensAndNotRanks) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);
    const at::Tensor tokens = world.rank() == 0 ? at::full({1, 1}, 1.0) : at::full({3, 1}, 5.0);

    yoke::mean(parallel(tokens).sum(), static_cast<double>(tokens.size(0))).backward();

    EXPECT_DOUBLE_EQ(grad_of(model->a), 4.0);  // (1 + 3 * 5) / 4
  });
}

TEST(Ddp, RowsAreTheDefaultCount) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);
    const at::Tensor rows = world.rank() == 0 ? at::full({1, 1}, 1.0) : at::full({3, 1}, 5.0);

    parallel(rows).mean().backward();

    EXPECT_DOUBLE_EQ(grad_of(model->a), 4.0);
  });
}

TEST(Ddp, ABatchOfNoRowsAddsNothingAlthoughItsMeanIsNaN) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      const at::Tensor rows = world.rank() == 0 ? at::empty({0, 1}) : at::full({2, 1}, 5.0);

      parallel(rows).mean().backward();

      EXPECT_DOUBLE_EQ(grad_of(model->a), 5.0);
    }
  });
}

TEST(Ddp, UnequalMicroBatchesGiveTheMeanOverAllRows) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("a");
    Ddp parallel(model, world);
    // rank 0: rows 1 | 2,2,2; rank 1: rows 3,3 | none
    const at::Tensor first = world.rank() == 0 ? at::full({1, 1}, 1.0) : at::full({2, 1}, 3.0);
    const at::Tensor second = world.rank() == 0 ? at::full({3, 1}, 2.0) : at::empty({0, 1});
    {
      const auto local = parallel.no_sync();
      (parallel(first).mean() / 2).backward();
    }
    (parallel(second).mean() / 2).backward();

    EXPECT_NEAR(grad_of(model->a), (1.0 + 3 * 2.0 + 2 * 3.0) / 6.0, 1e-6);
  });
}

TEST(Ddp, ALossThatTouchesNoParameterStillTakesPart) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>(world.rank() == 0 ? "" : "a");
    Ddp parallel(model, world);

    parallel(row(4.0)).sum().backward();

    EXPECT_DOUBLE_EQ(grad_of(model->a), 2.0);
    EXPECT_FALSE(model->b->weight.grad().defined());
  });
}

TEST(Ddp, GradientsAreViewsIntoBucketsThatZeroGradTakes) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>();
    Ddp parallel(model, world);
    parallel(row(input_of(world))).sum().backward();
    const void* place = model->a->weight.grad().data_ptr();

    model->zero_grad(/*set_to_none=*/false);
    parallel(row(input_of(world))).sum().backward();

    EXPECT_EQ(model->a->weight.grad().data_ptr(), place);
    EXPECT_DOUBLE_EQ(grad_of(model->a), 2.0);
  });
}

TEST(Ddp, LaterStepsSendBucketsWhileBackwardRuns) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<HeadModel>();
    DistributedDataParallel parallel(model, world, {.first_bucket_bytes = 4, .bucket_bytes = 4});
    for (int step = 0; step < 3; ++step) parallel(at::ones({1, 2})).sum().backward();

    const EngineReport report = parallel.report();

    EXPECT_TRUE(report.order_learnt);
    EXPECT_EQ(report.buckets, 6U);
    EXPECT_EQ(report.collectives, 18U);
    EXPECT_EQ(report.early_collectives, 8U) << "four used parameters in each of two steps";
    EXPECT_EQ(report.order.front(), "out.bias") << "the last layer's gradient comes first";
  });
}

TEST(Ddp, AFailedBackwardLeavesTheWrapperUsable) {
  struct Failing final : torch::autograd::Function<Failing> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
      return x.clone();
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list) {
      throw std::runtime_error("label out of range");
    }
  };
  struct Model : Toy2 {
    at::Tensor forward(const at::Tensor& x) {
      return a->forward(fail ? Failing::apply(b->forward(x)) : b->forward(x));
    }
    bool fail = false;
  };
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Model>();
    DistributedDataParallel parallel(model, world, {.first_bucket_bytes = 4, .bucket_bytes = 4});
    parallel(row(1)).sum().backward();
    model->fail = true;
    EXPECT_THROW(parallel(row(1)).sum().backward(), std::runtime_error);
    model->fail = false;
    model->zero_grad();

    parallel(row(input_of(world))).sum().backward();

    EXPECT_DOUBLE_EQ(grad_of(model->a), 2.0);
    EXPECT_DOUBLE_EQ(grad_of(model->b), 2.0);
  });
}

TEST(Ddp, ASharedParameterIsAveragedOnce) {
  struct Tied : torch::nn::Module {
    Tied() {
      first = register_parameter("first", at::full({1}, 2.0));
      second = register_parameter("second", first);
    }
    at::Tensor forward(const at::Tensor& x) { return x * first * second; }
    at::Tensor first;
    at::Tensor second;
  };
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Tied>();
    DistributedDataParallel parallel(model, world);

    parallel(row(input_of(world))).sum().backward();

    EXPECT_DOUBLE_EQ(model->first.grad().item<double>(),
                     2 * 2.0 * 2.0);  // d(w^2 x)/dw = 2wx, x averages to 2
    EXPECT_EQ(parallel.report().order.size(), 1U);
  });
}

TEST(Ddp, DifferentModelsAreRefusedOnEveryRankWithTheFirstDifference) {
  std::atomic<int> refused{0};
  run_local_ranks(3, [&refused](World& world) {
    auto model = std::make_shared<torch::nn::LinearImpl>(2, world.rank() == 2 ? 5 : 4);
    try {
      DistributedDataParallel parallel(model, world);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("rank 2 has parameter weight 5x2"), std::string::npos)
          << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

TEST(Ddp, ModelsInDifferentMemoryFormatsAreRefused) {
  std::atomic<int> refused = 0;
  run_local_ranks(2, [&](World& world) {
    torch::nn::Conv2d model(torch::nn::Conv2dOptions(3, 4, 3));
    if (world.rank() == 1) {
      model->weight.set_data(model->weight.contiguous(at::MemoryFormat::ChannelsLast));
    }
    try {
      DistributedDataParallel parallel(model, world);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("weight 4x3x3x3 Float strides 27x1x9x3"), std::string::npos)
          << error.what();
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

TEST(Ddp, APartOfAWrappedModelIsNotWrappedAgain) {
  run_local_ranks(1, [](World& world) {
    auto model = std::make_shared<Toy2>("ab");
    Ddp parallel(model, world);

    EXPECT_THROW(DistributedDataParallel(model->b, world), Error);
  });
}

TEST(Ddp, AnIdleFirstStepTeachesNothing) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>("ab");
    Ddp parallel(model, world);
    if (world.rank() == 0) {
      parallel.idle_step();
    } else {
      parallel(row(3.0)).sum().backward();
    }
    EXPECT_FALSE(parallel.report().order_learnt);

    parallel(row(input_of(world))).sum().backward();
    EXPECT_TRUE(parallel.report().order_learnt);
  });
}

TEST(Ddp, AModelWithoutTrainableParametersIsRefused) {
  run_local_ranks(1, [](World& world) {
    auto model = std::make_shared<Toy2>();
    for (at::Tensor& parameter : model->parameters()) parameter.set_requires_grad(false);
    EXPECT_THROW(Ddp(model, world), Error);
  });
}

TEST(Ddp, FrozenParametersTakeNoPart) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>();
    model->b->weight.set_requires_grad(false);
    Ddp parallel(model, world);

    parallel(row(input_of(world))).sum().backward();

    EXPECT_DOUBLE_EQ(grad_of(model->a), 2.0);
    EXPECT_FALSE(model->b->weight.grad().defined());
    EXPECT_TRUE(parallel.report().unused.empty());
  });
}

TEST(Ddp, EvaluationWithoutGradientsSendsNothing) {
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Toy2>();
    Ddp parallel(model, world);
    const at::NoGradGuard no_grad;

    const at::Tensor out = parallel(row(2.0));

    EXPECT_FALSE(out.requires_grad());
    EXPECT_EQ(parallel.report().collectives, 0U);
  });
}

TEST(Ddp, GradOfAnInputDoesNotAverageAndDoubleBackwardDoes) {
  struct Square : torch::nn::Module {
    Square() { w = register_parameter("w", at::full({1}, 3.0)); }
    at::Tensor forward(const at::Tensor& x) { return w * x * x; }
    at::Tensor w;
  };
  run_local_ranks(2, [](World& world) {
    auto model = std::make_shared<Square>();
    DistributedDataParallel parallel(model, world);
    const double x = input_of(world);
    const at::Tensor input = at::full({1, 1}, x).set_requires_grad(true);

    const at::Tensor out = parallel(input);
    const auto slope = torch::autograd::grad({out.sum()}, {input}, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true);
    EXPECT_EQ(parallel.report().collectives, 0U);
    slope[0].sum().backward();

    EXPECT_DOUBLE_EQ(slope[0].item<double>(), 6 * x);
    EXPECT_DOUBLE_EQ(model->w.grad().item<double>(),
                     (2 * 1.0 + 2 * 3.0) / 2);  // d(2wx)/dw = 2x, averaged
  });
}

TEST(Ddp, TwoForwardsOfUnequalRowsInOneBackwardAreRefused) {
  run_local_ranks(1, [](World& world) {
    auto model = std::make_shared<Toy2>();
    Ddp parallel(model, world);
    const at::Tensor loss = parallel(at::ones({2, 1})).mean() + parallel(at::ones({3, 1})).mean();
    EXPECT_THROW(loss.backward(), Error);
  });
}

}  // namespace
}  // namespace yoke::parallel
