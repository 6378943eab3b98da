#include "yoke/settings/resolve.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch_folder.hpp"
#include "yoke/core/error.hpp"

namespace yoke::settings {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Arguments = std::vector<std::string>;

Schema schema() {
  const Range above_zero{.least = 0, .without_least = true};
  const Range to_one{.least = 0, .most = 1, .without_most = true};
  return {
      "try [flags]",
      {{.key = "batch-size",
        .type = Type::integer,
        .fallback = std::int64_t{64},
        .range = {.least = 1, .most = 1000}},
       {.key = "lr", .type = Type::number, .fallback = 0.1, .range = above_zero},
       {.key = "momentum", .type = Type::number, .fallback = 0.5, .range = to_one},
       {.key = "model", .type = Type::choice, .fallback = "mlp", .choices = {"mlp", "resnet50"}},
       {.key = "data", .fallback = "synthetic"},
       {.key = "ranks",
        .type = Type::integer,
        .if_unset = "one per GPU",
        .range = {.least = 1},
        .aliases = {"nproc-per-node"}},
       {.key = "freeze", .type = Type::texts, .fallback = std::vector<std::string>{}},
       {.key = "betas", .type = Type::numbers, .fallback = std::vector<double>{0.9, 0.999}},
       {.key = "device-ids",
        .type = Type::integers,
        .fallback = std::vector<std::int64_t>{},
        .range = {.least = 0}},
       {.key = "json", .type = Type::toggle, .fallback = false},
       {.key = "keep", .type = Type::toggle, .fallback = true},
       {.key = "recipe", .type = Type::path, .per_call = true}}};
}

/// No site file, whatever this machine has.
Settings settings_of(Arguments arguments, core::EnvironmentMap variables = {},
                     std::filesystem::path site_file = "/nonexistent/site.toml") {
  return resolve(schema(), {.arguments = std::move(arguments),
                            .variables = std::move(variables),
                            .site_file = std::move(site_file)});
}

core::Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const core::Error& error) {
    return error;
  }
  return {core::Code::internal, "nothing was refused"};
}

core::Error refusal(const Arguments& arguments, const core::EnvironmentMap& variables = {}) {
  return error_of([&] { (void)settings_of(arguments, variables); });
}

TEST(Flags, AreReadWithASpaceOrAnEqualsSignAndTheLastOneCounts) {
  EXPECT_EQ(settings_of({"--batch-size", "8"}).integer("batch-size"), 8);
  EXPECT_EQ(settings_of({"--batch-size=8"}).integer("batch-size"), 8);
  EXPECT_EQ(settings_of({"--batch_size=8"}).integer("batch-size"), 8);
  EXPECT_EQ(settings_of({"--lr", "0.3", "--lr=1e-2"}).number("lr"), 0.01);
  EXPECT_EQ(settings_of({"--lr", "1"}).number("lr"), 1.0);
  EXPECT_EQ(settings_of({"--data=a=b"}).text("data"), "a=b");
  EXPECT_EQ(settings_of({"--nproc-per-node", "3"}).integer("ranks"), 3);
}

TEST(Flags, TogglesTakeNoWord) {
  EXPECT_TRUE(settings_of({"--json"}).toggle("json"));
  EXPECT_FALSE(settings_of({"--json", "--no-json"}).toggle("json"));
  EXPECT_FALSE(settings_of({"--no-keep"}).toggle("keep"));
  EXPECT_FALSE(settings_of({"--keep=off"}).toggle("keep"));
  EXPECT_THAT(refusal({"--json=maybe"}).message(), HasSubstr("neither true nor false"));
  EXPECT_THAT(refusal({"--no-lr"}).message(), HasSubstr("--no-lr: unknown flag"));
}

TEST(Flags, ListsAreRepeatedOrSplitAtCommas) {
  EXPECT_THAT(settings_of({"--freeze", "conv1.*", "--freeze", "bn1.*"}).texts("freeze"),
              ElementsAre("conv1.*", "bn1.*"));
  EXPECT_THAT(settings_of({"--device-ids", "0,2"}).integers("device-ids"), ElementsAre(0, 2));
  EXPECT_THAT(settings_of({"--betas", "0.8, 0.9"}).numbers("betas"), ElementsAre(0.8, 0.9));
  EXPECT_THAT(settings_of({"--betas="}).numbers("betas"), IsEmpty());
}

TEST(Flags, AnUnknownOneIsAnsweredWithTheNearest) {
  const core::Error error = refusal({"--bach-size", "3"});

  EXPECT_EQ(error.code(), core::Code::invalid_argument);
  EXPECT_EQ(error.message(), "--bach-size: unknown flag");
  EXPECT_EQ(error.hint(), "did you mean --batch-size?");
  EXPECT_THAT(refusal({"--zzzzzzzz"}).hint(), HasSubstr("--help"));
  EXPECT_THAT(refusal({"train.toml"}).message(), HasSubstr("unexpected argument \"train.toml\""));
}

TEST(Flags, AMissingWordIsNotTakenFromTheNextFlag) {
  EXPECT_THAT(refusal({"--lr", "--json"}).message(), HasSubstr("--lr: no value follows"));
  EXPECT_THAT(refusal({"--lr"}).message(), HasSubstr("no value follows"));
  EXPECT_THAT(refusal({"--lr", "-1"}).message(), HasSubstr("-1 is below 0"));
}

TEST(Flags, HelpWinsOverEverythingElse) {
  EXPECT_TRUE(settings_of({"--bogus", "-h"}).wants_help());
  EXPECT_TRUE(settings_of({"--recipe", "/nonexistent", "--help"}).wants_help());
  EXPECT_FALSE(settings_of({}).wants_help());
}

TEST(Values, OutOfRangeOrOfAnotherTypeNameKeyValueAndWhatIsAllowed) {
  const core::Error error = refusal({"--batch-size", "0"});

  EXPECT_EQ(error.message(), "--batch-size 0: 0 is below 1");
  EXPECT_EQ(error.hint(), "allowed: an integer, at least 1 and at most 1000");
  EXPECT_EQ(refusal({"--batch-size", "many"}).message(), "--batch-size many: not an integer");
  EXPECT_EQ(refusal({"--batch-size", "8.0"}).message(), "--batch-size 8.0: not an integer");
  EXPECT_EQ(refusal({"--batch-size", "1001"}).message(), "--batch-size 1001: 1001 is above 1000");
  EXPECT_EQ(refusal({"--lr", "0"}).message(), "--lr 0: 0 itself is not allowed");
  EXPECT_EQ(refusal({"--lr", "nan"}).message(), "--lr nan: not a finite number");
  EXPECT_EQ(refusal({"--lr", "inf"}).message(), "--lr inf: not a finite number");
  EXPECT_EQ(refusal({"--lr", "0.1x"}).message(), "--lr 0.1x: not a number");
  EXPECT_EQ(refusal({"--momentum", "1"}).hint(), "allowed: a number, at least 0 and below 1");
  EXPECT_EQ(refusal({"--ranks", "0"}).hint(),
            "allowed: an integer, at least 1; leave it out for: one per GPU");
  EXPECT_EQ(refusal({"--device-ids", "0,-1"}).message(), "--device-ids 0,-1: -1 is below 0");
  EXPECT_EQ(refusal({"--data", ""}).message(), "--data : empty");
  EXPECT_THAT(refusal({"--data", std::string(1, '\xC3')}).message(), HasSubstr("not UTF-8"));
}

TEST(Values, AnUnknownChoiceIsAnsweredWithTheNearest) {
  const core::Error error = refusal({"--model", "resnet51"});

  EXPECT_EQ(error.message(), "--model resnet51: unknown model \"resnet51\"");
  EXPECT_EQ(error.hint(), "did you mean resnet50?");
}

TEST(Variables, CountMoreThanDefaultsAndLessThanFlags) {
  const core::EnvironmentMap variables{{"YOKE_LR", "0.5"},
                                       {"YOKE_BATCH_SIZE", "16"},
                                       {"YOKE_FREEZE", "a,b"},
                                       {"YOKE_JSON", "1"},
                                       {"YOKE_DATA", ""}};

  const Settings settings = settings_of({"--lr", "0.7"}, variables);

  EXPECT_EQ(settings.number("lr"), 0.7);
  EXPECT_EQ(settings.integer("batch-size"), 16);
  EXPECT_THAT(settings.texts("freeze"), ElementsAre("a", "b"));
  EXPECT_TRUE(settings.toggle("json"));
  EXPECT_EQ(settings.text("data"), "synthetic") << "an empty variable counts as absent";
  EXPECT_EQ(settings.setting("batch-size").origin.text(), "YOKE_BATCH_SIZE");
  EXPECT_EQ(settings.setting("lr").origin.text(), "flag");
  EXPECT_EQ(settings.setting("momentum").origin.text(), "default");
}

TEST(Variables, ABadOneIsNamedEvenIfAFlagOverridesIt) {
  EXPECT_EQ(refusal({"--lr", "0.1"}, {{"YOKE_LR", "fast"}}).message(),
            "YOKE_LR=fast: not a number");
}

class Recipe : public ::testing::Test {
 protected:
  [[nodiscard]] core::Error refused(const std::string& words) {
    const std::string name = folder_.write("a.toml", words);
    return refusal({"--recipe", name});
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_.path() / name).string();
  }

  ScratchFolder folder_;
};

TEST_F(Recipe, GivesValuesOfEveryTypeAndTheirLines) {
  const std::string name = folder_.write("a.toml",
                                         "# a recipe\n"
                                         "batch-size = 32\n"
                                         "lr = 1\n"
                                         "freeze = [\"conv1.*\", \"bn1.*\"]\n"
                                         "device_ids = [1, 0]\n"
                                         "betas = [0, 0.5]\n"
                                         "keep = false\n"
                                         "data = 'C:\\images'\n");

  const Settings settings = settings_of({"--recipe", name});

  EXPECT_EQ(settings.integer("batch-size"), 32);
  EXPECT_EQ(settings.number("lr"), 1.0);
  EXPECT_THAT(settings.texts("freeze"), ElementsAre("conv1.*", "bn1.*"));
  EXPECT_THAT(settings.integers("device-ids"), ElementsAre(1, 0));
  EXPECT_THAT(settings.numbers("betas"), ElementsAre(0.0, 0.5));
  EXPECT_FALSE(settings.toggle("keep"));
  EXPECT_EQ(settings.text("data"), "C:\\images");
  EXPECT_EQ(settings.setting("lr").origin.text(), "recipe " + name + ":3");
}

TEST_F(Recipe, CountsLessThanAVariableAndMoreThanTheSiteFile) {
  const std::string recipe = folder_.write("a.toml", "lr = 0.2\nbatch-size = 2\n");
  const std::string site = folder_.write("site.toml", "lr = 0.3\nbatch-size = 3\nmomentum = 0.3\n");

  const Settings settings = settings_of({"--recipe", recipe}, {{"YOKE_LR", "0.1"}}, site);

  EXPECT_EQ(settings.number("lr"), 0.1);
  EXPECT_EQ(settings.integer("batch-size"), 2);
  EXPECT_EQ(settings.number("momentum"), 0.3);
  EXPECT_EQ(settings.setting("momentum").origin.text(), "site " + site + ":3");
}

TEST_F(Recipe, IsFoundThroughItsVariableToo) {
  const std::string name = folder_.write("a.toml", "lr = 0.2");

  EXPECT_EQ(settings_of({}, {{"YOKE_RECIPE", name}}).number("lr"), 0.2);
}

TEST_F(Recipe, ABaseRecipeCountsLessThanTheNamedOne) {
  const std::string base = folder_.write("run/recipe.toml", "lr = 0.2\nmomentum = 0.2\n");
  const std::string named = folder_.write("a.toml", "lr = 0.3\n");

  const Settings settings =
      resolve(schema(),
              {.arguments = {"--recipe", named}, .site_file = "/nonexistent", .base_recipe = base});

  EXPECT_EQ(settings.number("lr"), 0.3);
  EXPECT_EQ(settings.number("momentum"), 0.2);
}

TEST_F(Recipe, ExtendsAFileBesideItAndOverridesIt) {
  folder_.write("base/common.toml", "lr = 0.2\nbatch-size = 2\nmomentum = 0.2\n");
  folder_.write("base/middle.toml", "batch_size = 3\nextends = \"common.toml\"\n");
  const std::string name =
      folder_.write("a.toml", "momentum = 0.4\nextends = \"base/middle.toml\"\n");

  const Settings settings = settings_of({"--recipe", name});

  EXPECT_EQ(settings.number("lr"), 0.2);
  EXPECT_EQ(settings.integer("batch-size"), 3);
  EXPECT_EQ(settings.number("momentum"), 0.4);
  EXPECT_EQ(settings.setting("lr").origin.text(), "recipe " + file("base/common.toml") + ":1");
}

TEST_F(Recipe, ThatExtendsItselfIsRefusedWithTheCircle) {
  folder_.write("b.toml", "extends = \"a.toml\"");

  EXPECT_EQ(refused("extends = \"b.toml\"").message(),
            "recipe " + file("a.toml") + ": extends itself: " + file("a.toml") + " -> " +
                file("b.toml") + " -> " + file("a.toml"));
  EXPECT_THAT(refused("extends = \"./a.toml\"").message(), HasSubstr("extends itself"));
  EXPECT_THAT(refused("extends = 3").message(), HasSubstr("a.toml:1: extends: not a text"));
  EXPECT_THAT(refused("extends = []").message(), HasSubstr("a.toml:1: extends: not a text"));
}

TEST_F(Recipe, AMissingFileIsNamed) {
  const core::Error direct = refusal({"--recipe", file("none.toml")});
  const core::Error extended = refused("extends = \"none.toml\"");

  EXPECT_EQ(direct.code(), core::Code::not_found);
  EXPECT_THAT(direct.message(), HasSubstr("none.toml"));
  EXPECT_THAT(extended.message(), HasSubstr(file("none.toml")));
}

TEST_F(Recipe, AnUnknownKeyIsNamedWithItsLineAndTheNearest) {
  const core::Error error = refused("lr = 0.1\n\nbach_size = 3\n");

  EXPECT_EQ(error.code(), core::Code::invalid_argument);
  EXPECT_EQ(error.message(), "recipe " + file("a.toml") + ":3: bach_size: unknown key");
  EXPECT_EQ(error.hint(), "did you mean batch-size?");
}

TEST_F(Recipe, AValueOfTheWrongTypeIsNamedWithItsLine) {
  const std::string where = "recipe " + file("a.toml") + ":1: ";

  EXPECT_EQ(refused("batch-size = \"many\"").message(),
            where + "batch-size = \"many\": not an integer");
  EXPECT_EQ(refused("batch-size = 8.0").message(), where + "batch-size = 8.0: not an integer");
  EXPECT_EQ(refused("batch-size = 0").message(), where + "batch-size = 0: 0 is below 1");
  EXPECT_EQ(refused("lr = nan").message(), where + "lr = nan: not a finite number");
  EXPECT_EQ(refused("lr = true").message(), where + "lr = true: not a number");
  EXPECT_EQ(refused("keep = 1").message(), where + "keep = 1: neither true nor false");
  EXPECT_EQ(refused("data = 3").message(), where + "data = 3: not a text");
  EXPECT_THAT(refused("lr = [0.1]").message(), HasSubstr("a list, where one value is wanted"));
  EXPECT_THAT(refused("betas = [[0.1]]").message(), HasSubstr("strange kind"));
  EXPECT_THAT(refused("lr = 1979-05-27").message(), HasSubstr("strange kind"));
  EXPECT_THAT(refused("[lr]\nstart = 1").message(), HasSubstr(":1: lr: a table"));
}

TEST_F(Recipe, OneValueServesAsAList) {
  const std::string name = folder_.write("a.toml", "freeze = \"conv1.*\"\ndevice-ids = []\n");

  EXPECT_THAT(settings_of({"--recipe", name}).texts("freeze"), ElementsAre("conv1.*"));
  EXPECT_THAT(settings_of({"--recipe", name}).integers("device-ids"), IsEmpty());
}

TEST_F(Recipe, OneKeyInTwoSpellingsIsRefused) {
  const core::Error error = refused("batch-size = 1\nbatch_size = 2\n");

  EXPECT_THAT(error.message(), HasSubstr(file("a.toml") + ":2: batch_size = 2: given before in " +
                                         file("a.toml") + ":1"));
  EXPECT_THAT(refused("lr = 1\nlr = 2\n").message(), HasSubstr("a.toml:2"));
}

TEST_F(Recipe, WhatIsNotTomlIsNamedWithItsLine) {
  const core::Error error = refused("lr = 0.1\nbatch-size = = 3\n");

  EXPECT_EQ(error.code(), core::Code::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("recipe " + file("a.toml") + ":2: "));
  EXPECT_THAT(refused("lr = 0.1\nx" + std::string(1, '\xC3') + "( = 1").message(),
              HasSubstr("a.toml:2"));
}

TEST_F(Recipe, WhatConcernsOneCommandMayNotStandInIt) {
  EXPECT_THAT(refused("recipe = \"b.toml\"").message(), HasSubstr("belongs to one command"));
}

TEST_F(Recipe, TheSiteFileIsOptionalUnlessItIsNamed) {
  const std::string site = folder_.write("site.toml", "lr = 0.3");
  const std::string bad = folder_.write("bad.toml", "x = 1");

  EXPECT_EQ(settings_of({}, {{"YOKE_SITE_FILE", site}}).number("lr"), 0.3);
  EXPECT_EQ(settings_of({}, {}, file("none.toml")).number("lr"), 0.1);
  EXPECT_EQ(refusal({}, {{"YOKE_SITE_FILE", file("none.toml")}}).code(), core::Code::not_found);
  EXPECT_THAT(refusal({}, {{"YOKE_SITE_FILE", bad}}).message(),
              HasSubstr("site " + bad + ":1: x: unknown key"));
}

TEST(Getters, OfAnUnknownNameOrAnotherTypeAreFaultsOfTheProgram) {
  const Settings settings = settings_of({});

  EXPECT_EQ(error_of([&] { (void)settings.integer("nothing"); }).message(),
            "no option nothing in this schema");
  EXPECT_EQ(error_of([&] { (void)settings.integer("lr"); }).code(), core::Code::internal);
  EXPECT_FALSE(settings.is_set("ranks"));
  EXPECT_TRUE(settings.is_set("lr"));
}

TEST(Schemas, RefuseAKeyTwiceAndADefaultThatIsNotAllowed) {
  const auto code = [](const std::vector<Option>& options) {
    return error_of([&] { (void)Schema("x", options); }).code();
  };

  EXPECT_EQ(code({{.key = "a"}, {.key = "b", .aliases = {"a"}}}), core::Code::internal);
  EXPECT_EQ(code({{.key = "a", .type = Type::integer, .fallback = 0.5}}), core::Code::internal);
  EXPECT_EQ(code({{.key = "a", .type = Type::number, .fallback = std::int64_t{1}}}),
            core::Code::internal);
  EXPECT_EQ(code({{.key = "a", .type = Type::choice, .fallback = "x", .choices = {"y"}}}),
            core::Code::internal);
}

}  // namespace
}  // namespace yoke::settings
