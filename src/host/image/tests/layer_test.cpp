#include "yoke/image/layer.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_host.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/image/build_image.hpp"

namespace yoke::image {
namespace {

using ::testing::HasSubstr;

/// The layer that tar makes of a folder.
class Layer : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path pack(const std::string& how) const {
    const std::filesystem::path target = host_.root() / ("layer" + how);
    const auto result = core::run_child({.command = {"tar", "-c" + how + "f", target.string(), "-C",
                                                     (host_.root() / "tree").string(), "."}});
    EXPECT_TRUE(result.succeeded()) << result.err;
    return target;
  }

  FakeHost host_;
};

TEST_F(Layer, B111EmptyDriverFilesAreNamedWithTheirLinks) {
  const std::string folder = "/tree/usr/lib/x86_64-linux-gnu/";
  host_.file(folder + "libcuda.so.418.56", "");
  host_.link(folder + "libcuda.so.1", "libcuda.so.418.56");
  host_.file(folder + "libfoo.so", "real");

  for (const char* how : {"", "z"}) {
    const std::vector<LayerFault> faults = check_layer(read_layer(pack(how)));

    ASSERT_EQ(faults.size(), 2u);
    for (const LayerFault& fault : faults) {
      const bool is_link = fault.path.ends_with(".1");
      EXPECT_EQ(fault.path, folder.substr(6) + (is_link ? "libcuda.so.1" : "libcuda.so.418.56"));
      EXPECT_THAT(fault.reason,
                  HasSubstr(is_link ? "link to libcuda.so.418.56" : "empty driver file"));
    }
  }
}

TEST_F(Layer, TellsTheSystemOfARoot) {
  host_.file("/tree/usr/lib/os-release", "NAME=\"Debian\"\nID=debian\nVERSION_ID=\"12\"\n");
  EXPECT_EQ(system_in_tar(pack("")), "debian12");

  host_.file("/tree/usr/lib/os-release", "nothing of use\n");
  EXPECT_EQ(system_in_tar(pack("")), "");
}

TEST_F(Layer, B111AWholeCopyOfTheDriverIsAWarning) {
  host_.file("/tree/usr/lib/libcuda.so.550.54.14", "bytes");
  host_.file("/tree/usr/local/cuda/lib64/stubs/libcuda.so", "stub");

  const std::vector<LayerFault> faults = check_layer(read_layer(pack("")));

  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].severity, Severity::warning);
  EXPECT_THAT(faults[0].reason, HasSubstr("a copy of the driver (5 B)"));
}

TEST_F(Layer, LongNamesAreWhole) {
  const std::string name =
      "/tree/" + std::string(90, 'a') + "/" + std::string(90, 'b') + "/libcuda.so.1";
  host_.file(name, "");

  const std::vector<LayerFault> faults = check_layer(read_layer(pack("")));

  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].path, name.substr(6));
}

TEST_F(Layer, WhatIsNoTarIsOneError) {
  host_.file("/bad", std::string(1024, 'x'));
  host_.file("/zstd", "\x28\xB5\x2F\xFD" + std::string(1024, 'x'));

  EXPECT_THROW((void)read_layer(host_.root() / "bad"), Error);
  EXPECT_THROW((void)read_layer(host_.root() / "zstd"), Error);
  EXPECT_THROW((void)read_layer(host_.root() / "none"), Error);
}

}  // namespace
}  // namespace yoke::image
