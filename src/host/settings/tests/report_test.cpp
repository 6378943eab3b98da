#include "yoke/settings/report.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch_folder.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::settings {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

Settings settings_of(std::vector<std::string> arguments, core::EnvironmentMap variables = {}) {
  return resolve(train_schema(), {.arguments = std::move(arguments),
                                  .variables = std::move(variables),
                                  .site_file = "/nonexistent/site.toml"});
}

void expect_same_values(const Settings& a, const Settings& b) {
  for (const Option& option : a.schema().options()) {
    if (option.per_call) continue;
    EXPECT_EQ(a.setting(option.key).value, b.setting(option.key).value) << option.key;
  }
}

TEST(PrintConfig, ShowsEachValueAndWhereItCameFrom) {
  const ScratchFolder folder;
  const std::string recipe = folder.write("a.toml", "epochs = 5\nmomentum = 0.8\n");

  const std::string shown = print_config_text(
      settings_of({"--recipe", recipe, "--freeze", "a", "--freeze", "b\"c"}, {{"YOKE_SEED", "7"}}));

  EXPECT_THAT(shown, HasSubstr("\nepochs = 5  # from recipe " + recipe + ":1\n"));
  EXPECT_THAT(shown, HasSubstr("\nmomentum = 0.8  # from recipe " + recipe + ":2\n"));
  EXPECT_THAT(shown, HasSubstr("\nseed = 7  # from YOKE_SEED\n"));
  EXPECT_THAT(shown, HasSubstr("\nfreeze = [\"a\", \"b\\\"c\"]  # from flag\n"));
  EXPECT_THAT(shown, HasSubstr("\nbatch-size = 64  # from default\n"));
  EXPECT_THAT(shown, HasSubstr("\n# ranks is not set: one per GPU, else 1  # from default\n"));
  EXPECT_THAT(shown, HasSubstr("\n# recipe = \"" + recipe + "\"  # from flag\n"));
}

TEST(PrintConfig, IsARecipeItself) {
  const ScratchFolder folder;
  const Settings before = settings_of({"--lr", "0.25", "--ranks=2", "--json"});

  const std::string recipe = folder.write("shown.toml", print_config_text(before));

  expect_same_values(before, settings_of({"--recipe", recipe}));
}

TEST(ResolvedRecipe, GivesTheSameValuesAgain) {
  const ScratchFolder folder;
  const std::string strange = "quote \" backslash \\ line\n bell" + std::string(1, '\x07');
  const Settings before = settings_of({"--lr",           "0.30000000000000004",
                                       "--eps",          "1e-300",
                                       "--weight-decay", "1e22",
                                       "--timeout",      "5",
                                       "--ranks",        "3",
                                       "--freeze",       "layer1.*",
                                       "--freeze",       "tab\there",
                                       "--device-ids",   "2,0,1",
                                       "--weights",      strange,
                                       "--model",        "resnet18",
                                       "--betas",        "0,0.5",
                                       "--max-steps",    "9223372036854775807",
                                       "--out",          "p\u00e4ckchen",
                                       "--nesterov",     "--keep-best"});

  const Settings after =
      settings_of({"--recipe", folder.write("recipe.toml", resolved_toml(before))});

  expect_same_values(before, after);
  EXPECT_EQ(after.number("lr"), 0.1 + 0.2);
  EXPECT_EQ(after.text("weights"), strange);
  EXPECT_EQ(resolved_toml(after), resolved_toml(before));
}

TEST(ResolvedRecipe, HoldsNothingThatConcernsTheCommandOnly) {
  const std::string written = resolved_toml(settings_of({"--json", "--overwrite"}));

  EXPECT_THAT(written, Not(HasSubstr("json")));
  EXPECT_THAT(written, Not(HasSubstr("overwrite")));
  EXPECT_THAT(written, HasSubstr("\n# ranks is not set: one per GPU, else 1\n"));
}

TEST(Help, ListsEveryFlagByGroupInEightyColumns) {
  const Schema schema = train_schema();

  const std::string help = help_text(schema);

  EXPECT_THAT(help, HasSubstr("usage: yoke train [flags]\n\ndata and model\n  --data NAME|PATH     "
                              "   fashion-mnist, synthetic"));
  EXPECT_THAT(help, HasSubstr("--nproc-per-node"));
  EXPECT_THAT(help, HasSubstr("(default: 0.9,0.999)"));
  EXPECT_THAT(help, HasSubstr("(default: 300)"));
  for (const Option& option : schema.options()) {
    EXPECT_THAT(help, AnyOf(HasSubstr("  --" + option.key), HasSubstr("  --no-" + option.key)));
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Help, OfEvalLeavesOutWhatItDoesNotUse) {
  const std::string help = help_text(eval_schema());

  EXPECT_THAT(help, HasSubstr("--weights FILE|RUN"));
  EXPECT_THAT(help, Not(HasSubstr("--momentum")));
}

TEST(Help, ShowsTheFlagThatChangesAToggle) {
  const Schema schema("x", {{.key = "on", .type = Type::toggle, .fallback = true},
                            {.key = "off", .type = Type::toggle, .fallback = false}});

  EXPECT_THAT(help_text(schema), HasSubstr("  --no-on"));
  EXPECT_THAT(help_text(schema), HasSubstr("  --off"));
}

}  // namespace
}  // namespace yoke::settings
