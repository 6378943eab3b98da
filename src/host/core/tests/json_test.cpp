#include "yoke/core/json.hpp"

#include <gtest/gtest.h>

namespace yoke::core {
namespace {

TEST(Json, KeysKeepTheOrderInWhichTheyWereSet) {
  Json value;
  value["zeta"] = 1;
  value["alpha"] = 0.5;

  EXPECT_EQ(json_line(value), R"({"zeta":1,"alpha":0.5})");
  EXPECT_EQ(json_text(value), "{\n  \"zeta\": 1,\n  \"alpha\": 0.5\n}\n");
}

TEST(Json, BytesThatAreNotUtf8DoNotEndARun) {
  Json value;
  value["error"] = std::string("half \xc3");

  EXPECT_EQ(json_line(value), "{\"error\":\"half \xef\xbf\xbd\"}");
}

TEST(Json, ADamagedTextNamesItsFile) {
  try {
    (void)parse_json("{\"rank\": ", "runs/a/failure.json");
    FAIL() << "half an object was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_NE(error.message().find("runs/a/failure.json"), std::string::npos);
    EXPECT_FALSE(error.cause().empty());
  }
}

}  // namespace
}  // namespace yoke::core
