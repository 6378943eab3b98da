// The main function of tests that compare with Python: they need its environment.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

#include "python_twin.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string reason = yoke::twin::missing();
  if (reason.empty()) return RUN_ALL_TESTS();
  const char* required = std::getenv("YOKE_REQUIRE_FULL");
  const bool fails = required != nullptr && std::string_view(required) == "1";
  std::fprintf(stderr, "%s: %s\n", fails ? "failed" : "skipped", reason.c_str());
  return fails ? 1 : 77;
}
