#include "yoke/core/network.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& interface) {
  try {
    check_gloo_interface({{"GLOO_SOCKET_IFNAME", interface}}, {"eth0", "lo"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return {};
}

RankFacts on_machines(int count, const std::string& master) {
  RankFacts facts;
  facts.world_size = facts.node_count = count;
  facts.master_address = master;
  return facts;
}

TEST(GlooInterface, B035WhatIsNoInterfaceIsQuotedAndTheOnesThereAreListed) {
  EXPECT_THAT(refusal("^lo,docker"),
              AllOf(HasSubstr("GLOO_SOCKET_IFNAME=^lo,docker"), HasSubstr("exclusion list"),
                    HasSubstr("one interface"), HasSubstr("eth0, lo")));
  EXPECT_THAT(refusal("127.0.0.1"),
              AllOf(HasSubstr("=127.0.0.1"), HasSubstr("an address"), HasSubstr("eth0, lo")));
  EXPECT_THAT(refusal("nosuch0"),
              AllOf(HasSubstr("=nosuch0"), HasSubstr("no such interface"), HasSubstr("eth0, lo")));
  EXPECT_EQ(refusal("eth0"), "");
  EXPECT_EQ(refusal(""), "");
}

TEST(Loopback, B035SeveralMachinesBehindALoopbackNameAreSaidWithNameAndAddress) {
  const HostAddresses debian{.name = "n7", .addresses = {"127.0.1.1"}};

  const std::string words = loopback_warning(on_machines(2, "n0"), {}, debian);

  EXPECT_THAT(words,
              AllOf(HasSubstr("n7"), HasSubstr("127.0.1.1"), HasSubstr("GLOO_SOCKET_IFNAME")));
}

TEST(Loopback, B035ALoopbackMasterOfSeveralMachinesIsSaid) {
  const HostAddresses good{.name = "n7", .addresses = {"10.0.0.7"}};

  EXPECT_THAT(loopback_warning(on_machines(2, "127.0.0.1"), {}, good),
              HasSubstr("MASTER_ADDR=127.0.0.1"));
}

TEST(Loopback, WhatWorksIsNotSaid) {
  const HostAddresses debian{.name = "n7", .addresses = {"127.0.1.1"}};
  const HostAddresses mixed{.name = "n7", .addresses = {"127.0.1.1", "10.0.0.7"}};

  EXPECT_EQ(loopback_warning(on_machines(1, "127.0.0.1"), {}, debian), "");
  EXPECT_EQ(loopback_warning(on_machines(2, "n0"), {{"GLOO_SOCKET_IFNAME", "eth0"}}, debian), "");
  EXPECT_EQ(loopback_warning(on_machines(2, "n0"), {}, mixed), "");
}

TEST(Network, ThisMachineHasALoopbackInterfaceAndAName) {
  EXPECT_THAT(network_interfaces(), ::testing::Contains("lo"));
  EXPECT_NE(own_addresses().name, "");
}

}  // namespace
}  // namespace yoke::core
