#include "yoke/core/files.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::core {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-files-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  fs::path folder_;
};

TEST_F(Files, AnUncommittedFileLeavesTheOldOneAndNothingElse) {
  write_atomically(folder_ / "a", "old");

  {
    AtomicFile file(folder_ / "a");
    file.write("new");
  }

  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, ACommittedFileReplacesTheOldOne) {
  write_atomically(folder_ / "a", "old");
  write_atomically(folder_ / "a", "new");

  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, AMissingFolderIsNamed) {
  try {
    AtomicFile file(folder_ / "none" / "a");
    FAIL() << "created a file in a folder that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_NE(error.message().find("none/a"), std::string::npos);
  }
}

TEST_F(Files, AWriteThatTheSystemRefusesLeavesTheOldFileAndNothingElse) {
  write_atomically(folder_ / "a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);

  std::string message;
  try {
    write_atomically(folder_ / "a", std::string(2000, 'x'));
  } catch (const Error& error) {
    message = error.message();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1U);
}

}  // namespace
}  // namespace yoke::core
