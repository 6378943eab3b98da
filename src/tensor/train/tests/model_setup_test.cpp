#include "../model_setup.hpp"

#include <stdlib.h>

#include <filesystem>
#include <string>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/checkpoint/files.hpp"
#include "yoke/checkpoint/state_dict.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"

namespace yoke::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr models::InputOptions kFour{.num_classes = 4, .in_channels = 1, .image_size = 8};
constexpr models::InputOptions kThree{.num_classes = 3, .in_channels = 1, .image_size = 8};

/// A folder with the weights of a small CNN of 4 classes, made under seed 1.
class ModelSetup : public ::testing::Test {
 protected:
  ModelSetup() {
    std::string pattern = (fs::temp_directory_path() / "yoke-model-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    values_.model = "small-cnn";
    values_.seed = 1;
    saved_ = checkpoint::state_dict(*trained(kFour));
    checkpoint::save_state_dict(folder_ / "state_dict.pt", saved_);
    values_.seed = 2;
  }
  ~ModelSetup() override { fs::remove_all(folder_); }

  AnyModule trained(const models::InputOptions& input) {
    return model_to_train(values_, builtin_models(), input, at::kCPU);
  }
  AnyModule evaluated(const models::InputOptions& input) {
    return model_to_evaluate(values_, builtin_models(), input, at::kCPU);
  }
  at::Tensor saved(const std::string& name) const {
    for (const auto& [known, tensor] : saved_) {
      if (known == name) return tensor;
    }
    return {};
  }

  fs::path folder_;
  settings::TrainSettings values_;
  checkpoint::StateDict saved_;
};

TEST_F(ModelSetup, SeedDecidesTheWeights) {
  const AnyModule first = trained(kFour);
  const AnyModule second = trained(kFour);

  EXPECT_TRUE(
      first->named_parameters()["fc1.weight"].equal(second->named_parameters()["fc1.weight"]));
  EXPECT_FALSE(first->named_parameters()["fc1.weight"].equal(saved("fc1.weight")));  // another seed
}

TEST_F(ModelSetup, RunFolderMeansItsFinalWeights) {
  values_.weights = folder_.string();

  EXPECT_TRUE(trained(kFour)->named_parameters()["fc2.weight"].equal(saved("fc2.weight")));
}

TEST_F(ModelSetup, OtherClassesGetANewHeadAndTheRestIsLoaded) {
  values_.weights = folder_.string();
  const auto console = std::make_shared<core::RecordingConsole>();
  const auto before = core::attach(console);

  const AnyModule model = trained(kThree);

  core::attach(before);
  EXPECT_EQ(model->named_parameters()["fc2.weight"].size(0), 3);
  EXPECT_TRUE(model->named_parameters()["conv1.weight"].equal(saved("conv1.weight")));
  EXPECT_THAT(console->lines(),
              Contains(HasSubstr("new head fc2 for 3 classes; the weights have 4")));
}

TEST_F(ModelSetup, FrozenParametersTakeNoGradient) {
  values_.freeze = {"conv*", "fc1.bias"};

  const AnyModule model = trained(kFour);

  for (const auto& item : model->named_parameters()) {
    const bool frozen = item.key().starts_with("conv") || item.key() == "fc1.bias";
    EXPECT_EQ(item.value().requires_grad(), !frozen) << item.key();
  }
}

TEST_F(ModelSetup, NothingLeftToTrainIsRefused) {
  values_.freeze = {"*"};

  EXPECT_THROW((void)trained(kFour), Error);
}

TEST_F(ModelSetup, EvaluationKeepsTheSavedHead) {
  values_.weights = (folder_ / "state_dict.pt").string();

  const AnyModule model = evaluated(kThree);  // the data happen to lack the last class

  EXPECT_TRUE(model->named_parameters()["fc2.weight"].equal(saved("fc2.weight")));
}

TEST_F(ModelSetup, EvaluationOnMoreClassesThanTheHeadHasIsRefused) {
  values_.weights = folder_.string();

  try {
    (void)evaluated({.num_classes = 5, .in_channels = 1, .image_size = 8});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("4 classes"), HasSubstr("5")));
  }
}

TEST_F(ModelSetup, RunWithoutWeightsIsNamed) {
  fs::remove(folder_ / "state_dict.pt");
  values_.weights = folder_.string();

  try {
    (void)trained(kFour);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.message(), HasSubstr(folder_.string()));
  }
}

}  // namespace
}  // namespace yoke::train
