#include "yoke/archive/sealed_folder.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>

#include <gmock/gmock.h>

#include "scratch.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  core::write_atomically(path, bytes);
}

/// Model, optimizer, and one file a rank.
void save(const fs::path& target, int step) {
  UnsealedFolder next(target);
  write(next.path() / "model.safetensors", std::string(5000, 'm'));
  write(next.path() / "optimizer.safetensors", std::string(3000, static_cast<char>('a' + step)));
  write(next.path() / "rank" / "0.json", "{}");
  write(next.path() / "empty", "");
  next.seal({{"step", step}});
}

class SealedFolder : public Scratch {};

TEST_F(SealedFolder, IsThereWholeWithWhatItsWriterSaid) {
  save(folder_ / "step-1", 1);

  const Seal seal = verify(folder_ / "step-1");

  EXPECT_EQ(seal.about["step"], 1);
  ASSERT_EQ(seal.files.size(), 4U);
  EXPECT_EQ(seal.files[1].name, "model.safetensors");
  EXPECT_EQ(seal.files[1].bytes, 5000U);
  EXPECT_EQ(entries(), 1U);
  EXPECT_EQ(core::parse_json(core::read_file(folder_ / "step-1" / "manifest.json"), "it")["xxh3"]
                .get<std::string>()
                .size(),
            32U);
}

TEST_F(SealedFolder, HasTheHashThatXxhsumPrints) {
  UnsealedFolder next(folder_ / "step-1");
  write(next.path() / "a", "abc");
  next.seal({});

  // xxhsum -H128 of "abc"
  EXPECT_EQ(read_seal(folder_ / "step-1").files[0].xxh3, "06b05ab6733a618578af5f94892f3950");
}

TEST_F(SealedFolder, IsNotThereWithoutASeal) {
  {
    UnsealedFolder next(folder_ / "step-1");
    write(next.path() / "a", "abc");
    EXPECT_THAT(sealed_folders(folder_, "step-").good, IsEmpty());
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(SealedFolder, DoesNotReplaceAnother) {
  save(folder_ / "step-1", 1);

  const Error error = error_of([&] { save(folder_ / "step-1", 2); });

  EXPECT_THAT(error.message(), HasSubstr("is there already"));
  EXPECT_EQ(verify(folder_ / "step-1").about["step"], 1);
}

TEST_F(SealedFolder, B077OfAKilledWriterIsNoneAndIsRemovedLater) {
  const pid_t child = ::fork();
  if (child == 0) {
    UnsealedFolder next(folder_ / "step-1");
    write(next.path() / "a", "abc");
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);

  EXPECT_THAT(sealed_folders(folder_, "step-").good, IsEmpty());
  EXPECT_EQ(entries(), 1U);
  remove_unsealed(folder_);
  EXPECT_EQ(entries(), 0U);
}

TEST_F(SealedFolder, TheNewestGoodOneComesFirstAndTheOthersAreSkippedWithTheirReasons) {
  for (int step = 1; step <= 4; ++step) save(folder_ / core::text("step-", step), step);
  fs::remove(folder_ / "step-4" / "model.safetensors");
  fs::resize_file(folder_ / "step-3" / "optimizer.safetensors", 2999);
  fs::create_directories(folder_ / "step-9");
  fs::create_directories(folder_ / "other");

  const SealedFolders found = sealed_folders(folder_, "step-");

  EXPECT_THAT(found.good, ElementsAre(folder_ / "step-2", folder_ / "step-1"));
  ASSERT_EQ(found.skipped.size(), 3U);
  EXPECT_THAT(found.skipped[0].why, HasSubstr("manifest.json"));
  EXPECT_THAT(found.skipped[1].why, HasSubstr("model.safetensors"));
  EXPECT_THAT(found.skipped[2].why, HasSubstr("has 2999 B, was saved with 3000"));
}

TEST_F(SealedFolder, ThatIsNotThereIsNoError) {
  EXPECT_THAT(sealed_folders(folder_ / "none", "step-").good, IsEmpty());
}

TEST_F(SealedFolder, NamesOutsideOfItAreRefused) {
  save(folder_ / "step-1", 1);
  const fs::path manifest = folder_ / "step-1" / "manifest.json";
  std::string bytes = core::read_file(manifest);
  bytes.replace(bytes.find("rank/0.json"), 11, "../../../x1");
  core::write_atomically(manifest, bytes);

  EXPECT_EQ(error_of([&] { verify(folder_ / "step-1"); }).code(), Code::corrupt_data);
}

TEST_F(SealedFolder, SpaceIsLookedAtBeforehand) {
  EXPECT_NO_THROW(require_space(folder_, 1));
  EXPECT_THAT(error_of([&] { require_space(folder_, std::uint64_t{1} << 62); }).message(),
              HasSubstr("needed"));
}

enum class Damage { flipped_bit, truncation, deletion };

class SealedFolderDamage : public SealedFolder, public ::testing::WithParamInterface<Damage> {
 protected:
  void damage(const fs::path& file) {
    if (GetParam() == Damage::deletion) {
      fs::remove(file);
      return;
    }
    std::string bytes = core::read_file(file);
    const std::size_t at = random_() % bytes.size();
    if (GetParam() == Damage::truncation) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_() % 8));
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::mt19937 random_{7};
};

TEST_P(SealedFolderDamage, B078IsFoundWhereverItIs) {
  const std::vector<std::string> files{"model.safetensors", "optimizer.safetensors", "rank/0.json",
                                       "manifest.json"};
  int unnoticed = 0;
  save(folder_ / "whole", 1);
  for (int round = 0; round < 500; ++round) {
    const fs::path target = folder_ / core::text("step-", round);
    fs::copy(folder_ / "whole", target, fs::copy_options::recursive);
    damage(target / files[random_() % files.size()]);
    try {
      verify(target);
      ++unnoticed;
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(unnoticed, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SealedFolderDamage,
                         ::testing::Values(Damage::flipped_bit, Damage::truncation,
                                           Damage::deletion));

}  // namespace
}  // namespace yoke::archive
