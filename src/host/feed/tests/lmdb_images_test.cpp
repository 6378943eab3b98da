#include "yoke/feed/lmdb_images.hpp"

#include <lmdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "temporary_folder.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

void write_lmdb(const fs::path& folder, const std::map<std::string, std::string>& records) {
  fs::create_directories(folder);
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  mdb_env_create(&environment);
  mdb_env_set_mapsize(environment, 16 << 20);
  ASSERT_EQ(mdb_env_open(environment, folder.c_str(), 0, 0644), 0);
  ASSERT_EQ(mdb_txn_begin(environment, nullptr, 0, &transaction), 0);
  mdb_dbi_open(transaction, nullptr, 0, &database);
  for (const auto& [key, value] : records) {
    MDB_val k{key.size(), const_cast<char*>(key.data())};
    MDB_val v{value.size(), const_cast<char*>(value.data())};
    ASSERT_EQ(mdb_put(transaction, database, &k, &v, 0), 0);
  }
  ASSERT_EQ(mdb_txn_commit(transaction), 0);
  mdb_env_close(environment);
}

std::map<std::string, std::string> hundred() {
  std::map<std::string, std::string> records;
  for (int i = 100; i < 200; ++i) {
    records[std::to_string(i) + ".jpg"] = std::string(500, 'x') + std::to_string(i);
    records[std::to_string(i) + ".cls"] = std::to_string(i % 5);
  }
  return records;
}

std::string text_at(const EncodedImages& images, std::int64_t index) {
  std::vector<std::byte> memory;
  const auto bytes = images.read(index, memory);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Lmdb, HasItsSamplesInTheOrderOfTheirKeys) {
  const TemporaryFolder folder;
  write_lmdb(folder / "data", hundred());

  const LmdbImages images(folder / "data");
  const LmdbImages by_file(folder / "data/data.mdb");

  EXPECT_EQ(images.size(), 100);
  EXPECT_EQ(images.num_classes(), 5);
  EXPECT_EQ(images.label(7), 107 % 5);
  EXPECT_THAT(text_at(images, 42), ::testing::EndsWith("x142"));
  EXPECT_THAT(images.origin(42), HasSubstr("key 142"));
  EXPECT_EQ(by_file.fingerprint(), images.fingerprint());
}

TEST(Lmdb, KeysWithoutSuffixesAreImagesWithoutLabels) {
  const TemporaryFolder folder;
  write_lmdb(folder / "data", {{"aa", "one"}, {"bb", "two"}});

  const LmdbImages images(folder / "data");

  EXPECT_EQ(images.size(), 2);
  EXPECT_EQ(images.num_classes(), 0);
  EXPECT_EQ(images.label(1), -1);
  EXPECT_EQ(text_at(images, 1), "two");
}

// Four processes open it ten times each; one is killed in the middle. No lock file, so no slots.
TEST(Lmdb, B049ProcessesComeAndGoAsOftenAsTheyLike) {
  const TemporaryFolder folder;
  write_lmdb(folder / "data", hundred());
  fs::remove(folder / "data/lock.mdb");
  for (int epoch = 0; epoch < 10; ++epoch) {
    std::vector<pid_t> children;
    for (int worker = 0; worker < 4; ++worker) {
      const pid_t child = ::fork();
      if (child == 0) {
        const LmdbImages images(folder / "data");
        std::set<std::string> keys;
        for (std::int64_t i = 0; i < images.size(); ++i) keys.insert(images.origin(i));
        if (epoch == 2 && worker == 1) ::raise(SIGKILL);
        ::_exit(keys.size() == 100 ? 0 : 1);
      }
      children.push_back(child);
    }
    for (std::size_t worker = 0; worker < children.size(); ++worker) {
      int status = 0;
      ::waitpid(children[worker], &status, 0);
      if (epoch == 2 && worker == 1) continue;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << epoch;
    }
  }

  EXPECT_FALSE(fs::exists(folder / "data/lock.mdb"));
}

TEST(Lmdb, B049AMissingMapFileIsNamed) {
  const TemporaryFolder folder;

  const Error error = error_of([&] { const LmdbImages images(folder.path()); });

  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_THAT(error.message(), HasSubstr((folder / "data.mdb").string()));
}

TEST(Lmdb, AFileThatWasCutShortIsRefusedWithBothSizes) {
  const TemporaryFolder folder;
  write_lmdb(folder / "data", hundred());
  const fs::path file = folder / "data/data.mdb";
  const auto size = fs::file_size(file);
  fs::resize_file(file, size - 8192);

  const Error error = error_of([&] { const LmdbImages images(folder / "data"); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr(file.string()), HasSubstr(std::to_string(size - 8192))));
}

TEST(Lmdb, AnotherKindOfFileIsRefused) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "data");
  {
    std::ofstream(folder / "data/data.mdb") << std::string(20'000, 'x');
  }

  const Error error = error_of([&] { const LmdbImages images(folder / "data"); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), HasSubstr((folder / "data").string()));
}

}  // namespace
}  // namespace yoke::feed
