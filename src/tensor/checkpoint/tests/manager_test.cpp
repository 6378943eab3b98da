#include "yoke/checkpoint/manager.hpp"

#include <fstream>
#include <mutex>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/text.hpp"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunState state_at(std::int64_t step, int rank) {
  return {.facts = {{"epoch", step / 10}},
          .common = {{"model", {{"w", at::full({3}, static_cast<double>(step))}}},
                     {"optimizer", {{"w.momentum_buffer", at::full({3}, 0.5)}}}},
          .own_facts = {{"rank", rank}},
          .own = {{"random", at::full({2}, static_cast<double>(rank))}}};
}

class ManagerTest : public Scratch {
 protected:
  [[nodiscard]] fs::path root() const { return folder_ / "checkpoints"; }

  void save(int ranks, const std::vector<std::int64_t>& steps, ManagerOptions options = {}) {
    options.folder = root();
    comm::run_local_ranks(ranks, [&](comm::World& world) {
      Manager manager(world.host_group(), options);
      for (const std::int64_t step : steps) manager.save(step, state_at(step, world.rank()));
    });
  }

  [[nodiscard]] std::vector<std::string> folders() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(ManagerTest, TheNewestComesBackWithEachRanksOwnPart) {
  save(2, {5, 12});

  comm::run_local_ranks(2, [&](comm::World& world) {
    const auto loaded = Manager(world.host_group(), {.folder = root()}).load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, 12);
    EXPECT_EQ(loaded->ranks, 2);
    EXPECT_EQ(loaded->state.facts["epoch"], 1);
    EXPECT_EQ(loaded->state.own_facts["rank"], world.rank());
    EXPECT_TRUE(at::equal(loaded->state.common.at("model")[0].second, at::full({3}, 12.0)));
    EXPECT_TRUE(
        at::equal(loaded->state.own[0].second, at::full({2}, static_cast<double>(world.rank()))));
  });
}

TEST_F(ManagerTest, B080SaveReturnsOnEveryRankOnceTheWholeFolderIsThere) {
  comm::run_local_ranks(3, [&](comm::World& world) {
    Manager manager(world.host_group(), {.folder = root()});

    manager.save(5, state_at(5, world.rank()));

    EXPECT_TRUE(fs::exists(root() / folder_name(5) / "manifest.json"));
    EXPECT_TRUE(manager.load_newest());
  });
  EXPECT_THAT(folders(), ElementsAre(folder_name(5)));  // nothing else, under any name
}

TEST_F(ManagerTest, ADamagedOneIsWrittenOnceMoreAndAWholeOneIsNot) {
  save(2, {5, 12});
  std::ofstream(root() / folder_name(12) / "model.safetensors") << "cut";

  save(2, {12});

  comm::run_local_ranks(2, [&](comm::World& world) {
    const auto loaded = Manager(world.host_group(), {.folder = root()}).load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, 12);
  });
  EXPECT_THROW(save(2, {12}), Error);
}

TEST_F(ManagerTest, MoreRanksThanSavedHaveNoOwnPart) {
  save(1, {5});

  comm::run_local_ranks(2, [&](comm::World& world) {
    const auto loaded = Manager(world.host_group(), {.folder = root()}).load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->state.own.empty(), world.rank() == 1);
  });
}

TEST_F(ManagerTest, WithoutAnyThereIsNothing) {
  comm::run_local_ranks(1, [&](comm::World& world) {
    EXPECT_FALSE(Manager(world.host_group(), {.folder = root()}).load_newest());
  });
}

TEST_F(ManagerTest, ADamagedOneIsLeftOutWithItsReasonAndAnOlderOneTaken) {
  save(1, {5, 12});
  std::fstream file(root() / folder_name(12) / "model.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x7f');
  file.close();
  const auto console = std::make_shared<core::RecordingConsole>();
  const auto before = core::attach(console);

  comm::run_local_ranks(1, [&](comm::World& world) {
    const auto loaded = Manager(world.host_group(), {.folder = root()}).load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, 5);
  });
  core::attach(before);
  EXPECT_THAT(core::joined(console->lines(), "\n"), HasSubstr("its bytes changed"));
}

TEST_F(ManagerTest, TheNewestAreKeptAndThoseOfEveryHundredthStep) {
  save(1, {50, 100, 150, 200, 250}, {.folder = {}, .keep = 2, .keep_every = 100});

  EXPECT_THAT(folders(), ElementsAre(folder_name(100), folder_name(200), folder_name(250)));
}

TEST_F(ManagerTest, ARankThatCannotWriteIsNamedOnAllAndNothingIsLeft) {
  save(2, {5});
  std::mutex mutex;
  std::vector<std::string> messages;

  comm::run_local_ranks(2, [&](comm::World& world) {
    Manager manager(world.host_group(), {.folder = root()});
    RunState state = state_at(12, world.rank());
    if (world.rank() == 1) state.own = {{"bad", at::Tensor()}};
    try {
      manager.save(12, state);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
    }
  });

  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_THAT(messages[0], HasSubstr("rank 1: "));
  EXPECT_THAT(folders(), ElementsAre(folder_name(5)));
}

}  // namespace
}  // namespace yoke::checkpoint
