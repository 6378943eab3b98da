#include "yoke/cluster/secret.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/cluster/message.hpp"
#include "yoke/cluster/sha256.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using ::testing::HasSubstr;

// FIPS 180-4's own examples, and RFC 4231's test case 2.
TEST(Sha256, GivesTheStandardsDigests) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Message, AMacIsOfOneKeyOneDirectionAndOneBody) {
  const std::string mac = mac_of("key", Direction::request, "body");

  EXPECT_TRUE(is_authentic("key", Direction::request, "body", mac));
  EXPECT_FALSE(is_authentic("kez", Direction::request, "body", mac));
  EXPECT_FALSE(is_authentic("key", Direction::answer, "body", mac));
  EXPECT_FALSE(is_authentic("key", Direction::request, "bodz", mac));
  EXPECT_FALSE(is_authentic("key", Direction::request, "body", ""));
}

class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              core::text("yoke-secret-", ::getpid(), "-",
                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string put(const std::string& words, mode_t mode) const {
    const std::filesystem::path file = folder_ / "secret";
    core::write_atomically(file, words);
    ::chmod(file.c_str(), mode);
    return file.string();
  }

  std::filesystem::path folder_;
};

TEST_F(SecretFile, IsReadIfNobodyElseMay) {
  EXPECT_EQ(find_secret(put("0123456789abcdef\n", 0600), {}).bytes, "0123456789abcdef");
}

TEST_F(SecretFile, IsRefusedIfOthersMayReadIt) {
  const std::string file = put("0123456789abcdef\n", 0640);

  try {
    static_cast<void>(find_secret(file, {}));
    FAIL() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr(file));
    EXPECT_THAT(error.hint(), HasSubstr("chmod 600"));
  }
}

TEST_F(SecretFile, AShortOneIsRefused) {
  EXPECT_THROW(static_cast<void>(find_secret(put("short\n", 0600), {})), Error);
  EXPECT_THROW(static_cast<void>(find_secret({}, {{"YOKE_SECRET", "short"}})), Error);
}

TEST_F(SecretFile, TheVariableGoesBeforeTheUsualFile) {
  EXPECT_EQ(find_secret({}, {{"YOKE_SECRET", "0123456789abcdef"}}).source, "$YOKE_SECRET");
}

TEST_F(SecretFile, TheUsualFileIsMadeOnceAndForTheOwnerAlone) {
  const core::EnvironmentMap variables{{"HOME", folder_.string()}};

  const Secret first = find_secret({}, variables);
  const Secret second = find_secret({}, variables);

  EXPECT_GE(first.bytes.size(), 32U);
  EXPECT_EQ(first.bytes, second.bytes);
  struct stat info{};
  ASSERT_EQ(::stat(first.source.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(JobKey, DiffersFromJobToJob) {
  const Secret secret{.bytes = "0123456789abcdef"};

  EXPECT_NE(job_key(secret, "a"), job_key(secret, "b"));
  EXPECT_EQ(job_key(secret, "a").find(secret.bytes), std::string::npos);
}

}  // namespace
}  // namespace yoke::cluster
