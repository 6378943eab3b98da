#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch_folder.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/settings/settings.hpp"

namespace yoke::settings {
namespace {

using ::testing::ElementsAre;

/// What docs/settings.md shows between ``` and that word, and the next ```.
std::string snippet(const std::string& word) {
  const std::string page = core::read_file(std::string(YOKE_DOCS) + "/settings.md");
  const std::size_t begin = page.find("```" + word + "\n") + word.size() + 4;
  return page.substr(begin, page.find("```", begin) - begin);
}

Settings resolved(const std::vector<std::string>& arguments) {
  return resolve(train_schema(), {.arguments = arguments, .site_file = "/nonexistent/site.toml"});
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    (void)resolved(arguments);
  } catch (const core::Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(SettingsPage, ItsRecipeIsOne) {
  const ScratchFolder folder;

  const TrainSettings settings =
      train_settings(resolved({"--recipe", folder.write("small.toml", snippet("toml"))}));

  EXPECT_EQ(settings.model, "resnet18");
  EXPECT_EQ(settings.ranks, 2);
  EXPECT_EQ(settings.batch_size, 32);
  EXPECT_EQ(settings.scale_lr, ScaleLr::linear);
  EXPECT_EQ(settings.schedule, Schedule::cosine);
  EXPECT_THAT(settings.freeze, ElementsAre("conv1.*", "bn1.*"));
  EXPECT_TRUE(settings.channels_last);
}

TEST(SettingsPage, ItsErrorsAreThose) {
  const ScratchFolder folder;
  const std::string file = folder.write("small.toml", "\n\n\n\n\n\nbach-size = 3\n");
  std::string unknown_key = refusal({"--recipe", file});
  unknown_key.replace(unknown_key.find(file), file.size(), "small.toml");

  EXPECT_EQ(snippet("text"), unknown_key + "\n" + refusal({"--ranks", "0"}) + "\n");
}

}  // namespace
}  // namespace yoke::settings
