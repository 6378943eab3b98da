#include "yoke/core/error.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace yoke::core {
namespace {

TEST(Error, TextHoldsMessageHintAndCause) {
  const Error error(Code::io, "write a.bin: no space left on device", "free space there");

  const Error whole = error.caused_by(std::runtime_error("disk")).within("rank 3");

  EXPECT_STREQ(whole.what(),
               "rank 3: write a.bin: no space left on device / free space there (cause: disk)");
  EXPECT_EQ(whole.code(), Code::io);
}

TEST(Error, EveryCodeSurvivesItsName) {
  for (const Code code :
       {Code::invalid_argument, Code::not_found, Code::unsupported, Code::io, Code::corrupt_data,
        Code::timeout, Code::peer_lost, Code::cuda, Code::internal}) {
    EXPECT_EQ(code_from_name(name(code)), code);
  }
  EXPECT_EQ(code_from_name("from_the_future"), Code::internal);
}

}  // namespace
}  // namespace yoke::core
