#include "yoke/cluster/interfaces.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<Interface> kSome{{"eth0", "10.1.2.3"}, {"ib0", "10.77.0.1"}, {"lo", "127.0.0.1"}};

TEST(Interfaces, AreChosenByNameAddressOrNetwork) {
  EXPECT_EQ(choose_interface("ib0", kSome).address, "10.77.0.1");
  EXPECT_EQ(choose_interface("10.1.2.3", kSome).name, "eth0");
  EXPECT_EQ(choose_interface("10.77.0.0/24", kSome).name, "ib0");
  EXPECT_EQ(choose_interface("10.0.0.0/8", kSome).name, "eth0");
}

TEST(Interfaces, B035WhatIsNoneIsQuotedWithThoseThatAre) {
  for (const char* wanted : {"^lo,docker", "nosuch0", "10.78.0.0/24", "10.77.0.0/99", "/"}) {
    try {
      static_cast<void>(choose_interface(wanted, kSome));
      ADD_FAILURE() << wanted << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.message(), HasSubstr(std::string("'") + wanted + "'"));
      EXPECT_THAT(error.hint(), AllOf(HasSubstr("eth0 (10.1.2.3)"), HasSubstr("ib0")));
    }
  }
}

TEST(Interfaces, ThisMachineHasALoopback) {
  EXPECT_EQ(interface_of("127.0.0.1", interfaces()).name, "lo");
}

TEST(Transport, IsNamedWithItsRate) {
  const auto root = std::filesystem::temp_directory_path() / core::text("yoke-sys-", ::getpid());
  const auto put = [&](const std::string& name, const std::string& words) {
    std::filesystem::create_directories((root / name).parent_path());
    core::write_atomically(root / name, words);
  };
  put("sys/class/net/eth0/speed", "25000\n");
  put("sys/class/net/veth/speed", "-1\n");
  put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  put("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  put("sys/class/infiniband/mlx5_0/device/net/ib0/mtu", "2044\n");
  put("sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
  put("sys/class/infiniband/mlx5_1/ports/1/rate", "100 Gb/sec (4X EDR)\n");
  put("sys/class/infiniband/mlx5_1/device/net/eth1/mtu", "9000\n");

  EXPECT_EQ(transport_text("eth0", root), "eth0, TCP, 25 Gbit/s");
  EXPECT_EQ(transport_text("veth", root), "veth, TCP");
  EXPECT_EQ(transport_text("ib0", root), "ib0, InfiniBand, 200 Gb/sec");
  EXPECT_EQ(transport_text("eth1", root), "eth1, RoCE, 100 Gb/sec");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace yoke::cluster
