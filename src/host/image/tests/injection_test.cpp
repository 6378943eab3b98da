#include "yoke/image/injection.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_host.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/image/cdi.hpp"

namespace yoke::image {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

GpuRequest asked(const std::string& option) { return read_gpu_request({.option = option}); }

std::vector<std::string> paths(const std::vector<InjectedNode>& nodes) {
  std::vector<std::string> out;
  for (const InjectedNode& node : nodes) out.push_back(node.path);
  return out;
}

std::vector<std::string> hosts(const InjectionPlan& plan) {
  std::vector<std::string> out;
  for (const InjectedFile& file : plan.files) out.push_back(file.host);
  return out;
}

std::string link_at(const InjectionPlan& plan, const std::string& path) {
  for (const InjectedLink& link : plan.links) {
    if (link.path == path) return link.target;
  }
  return {};
}

/// B113: five cards whose minor numbers are not their indexes.
class FiveCards : public ::testing::Test {
 protected:
  void SetUp() override {
    host_.driver("550.54.14", "/usr/lib/x86_64-linux-gnu");
    const std::vector<unsigned> minors{1, 0, 2, 4, 3};
    for (int i = 0; i < 5; ++i) host_.card(i, minors[static_cast<std::size_t>(i)]);
  }

  [[nodiscard]] std::vector<std::string> nodes(const std::string& option) const {
    return paths(plan_injection(host_.tree(), asked(option)).nodes);
  }

  FakeHost host_;
};

TEST_F(FiveCards, B113IndexesAreThoseOfTheBusAndNotMinorNumbers) {
  EXPECT_THAT(nodes("device=0,1,3,4"),
              ElementsAre("/dev/nvidia1", "/dev/nvidia0", "/dev/nvidia4", "/dev/nvidia3",
                          "/dev/nvidiactl", "/dev/nvidia-uvm"));
  EXPECT_THAT(nodes("\"device=0,2\""),
              ElementsAre("/dev/nvidia1", "/dev/nvidia2", "/dev/nvidiactl", "/dev/nvidia-uvm"));
  EXPECT_THAT(nodes("device=GPU-00000003"), Contains("/dev/nvidia4"));
  EXPECT_EQ(nodes("all").size(), 7u);
  EXPECT_EQ(nodes("2").size(), 4u);
}

TEST_F(FiveCards, B113NoneGivesTheDriverWithoutCards) {
  const InjectionPlan plan = plan_injection(host_.tree(), asked("none"));

  EXPECT_THAT(plan.nodes, IsEmpty());
  EXPECT_THAT(hosts(plan), Contains("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14"));
}

TEST_F(FiveCards, B113VoidAndUnsetGiveNothing) {
  for (const RequestSources& sources :
       {RequestSources{.given = {{"NVIDIA_VISIBLE_DEVICES", "void"}}}, RequestSources{}}) {
    EXPECT_TRUE(plan_injection(host_.tree(), read_gpu_request(sources)).empty());
  }
}

TEST_F(FiveCards, B113ACardThatIsNotThereIsAnErrorWithTheNumberOfCards) {
  try {
    (void)nodes("device=7");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.message(), HasSubstr("'7' among 5 GPUs"));
  }
}

TEST_F(FiveCards, B113PrivilegedIsToldThatNothingIsIsolated) {
  const InjectionPlan plan =
      plan_injection(host_.tree(), asked("1"), nullptr, {.privileged = true});

  EXPECT_THAT(plan.warnings, Contains(HasSubstr("isolates nothing")));
}

TEST_F(FiveCards, B114SystemdWithoutCharLinksIsWarnedOf) {
  const InjectionPlan without =
      plan_injection(host_.tree(), asked("device=1"), nullptr, {.systemd_cgroups = true});
  host_.link("/dev/char/195:0", "../nvidia0");
  host_.link("/dev/char/195:255", "../nvidiactl");
  host_.link("/dev/char/510:0", "../nvidia-uvm");
  const InjectionPlan with =
      plan_injection(host_.tree(), asked("device=1"), nullptr, {.systemd_cgroups = true});
  const InjectionPlan cgroupfs = plan_injection(host_.tree(), asked("device=1"));

  EXPECT_THAT(without.warnings, Contains(HasSubstr("/dev/char/195:0, /dev/char/195:255")));
  EXPECT_THAT(with.warnings, IsEmpty());
  EXPECT_THAT(cgroupfs.warnings, IsEmpty());
}

TEST_F(FiveCards, TheImageItselfMayNotAskUnlessAllowed) {
  RequestSources sources{.image = {{"NVIDIA_VISIBLE_DEVICES", "all"}}};

  const InjectionPlan refused = plan_injection(host_.tree(), read_gpu_request(sources));
  sources.allow_image = true;
  const InjectionPlan allowed = plan_injection(host_.tree(), read_gpu_request(sources));

  EXPECT_TRUE(refused.empty());
  EXPECT_THAT(refused.warnings, Contains(HasSubstr("the image itself asks for cards")));
  EXPECT_EQ(allowed.gpus.size(), 5u);
}

TEST_F(FiveCards, RequestsAreHeardInOrder) {
  RequestSources sources{.cdi = {"nvidia.com/gpu=1"},
                         .mounts = {"/var/run/nvidia-container-devices/2"},
                         .given = {{"NVIDIA_VISIBLE_DEVICES", "3"}}};

  EXPECT_THAT(read_gpu_request(sources).names, ElementsAre("1"));
  sources.cdi.clear();
  EXPECT_THAT(read_gpu_request(sources).names, ElementsAre("2"));
  sources.mounts.clear();
  EXPECT_THAT(read_gpu_request(sources).names, ElementsAre("3"));
  sources.option = "none";
  EXPECT_EQ(read_gpu_request(sources).kind, GpuRequest::Kind::driver);
}

TEST_F(FiveCards, ARequirementOfTheImageIsHeldAgainstTheDriver) {
  RequestSources sources{.option = "all", .image = {{"NVIDIA_REQUIRE_CUDA", "cuda>=13.0"}}};

  EXPECT_THROW((void)plan_injection(host_.tree(), read_gpu_request(sources)), Error);
  sources.image["NVIDIA_REQUIRE_CUDA"] = "cuda>=13.0 driver>=550,driver<551";
  EXPECT_FALSE(plan_injection(host_.tree(), read_gpu_request(sources)).empty());
  sources.image = {{"NVIDIA_REQUIRE_CUDA", "cuda>=13.0"}, {"NVIDIA_DISABLE_REQUIRE", "1"}};
  EXPECT_FALSE(plan_injection(host_.tree(), read_gpu_request(sources)).empty());
}

TEST_F(FiveCards, GroupsOfClosedNodesAreAdded) {
  host_.node("/dev/nvidia0", 195, 0, "0660 44");

  EXPECT_THAT(plan_injection(host_.tree(), asked("device=1")).groups, ElementsAre(44u));
}

TEST_F(FiveCards, CapabilitiesChooseTheLibraries) {
  const auto plan_of = [&](const std::string& capabilities) {
    return hosts(plan_injection(host_.tree(), asked("1,\"capabilities=" + capabilities + "\"")));
  };

  EXPECT_THAT(plan_of("utility"), ElementsAre(HasSubstr("libnvidia-ml.so")));
  EXPECT_THAT(plan_of("compute"), Not(Contains(HasSubstr("glcore"))));
  EXPECT_THAT(plan_of("all"), Contains(HasSubstr("glcore")));
  EXPECT_THROW((void)asked("all,capabilities=comptue"), Error);
}

TEST_F(FiveCards, EmptyAndDanglingDriverFilesAreLeftOutWithAWarning) {
  host_.file("/usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.550.54.14", "");
  host_.link("/usr/lib/x86_64-linux-gnu/libcudadebugger.so.550.54.14", "/gone");

  const InjectionPlan plan = plan_injection(host_.tree(), asked("1"));

  EXPECT_THAT(hosts(plan), Not(Contains(HasSubstr("nvvm"))));
  EXPECT_THAT(plan.warnings, Contains(HasSubstr("libnvidia-nvvm.so.550.54.14 is empty")));
  EXPECT_THAT(plan.warnings, Contains(HasSubstr("leads nowhere")));
}

TEST_F(FiveCards, MigSlicesBringTheirCapabilityNodesAlsoBeforeTheyExist) {
  const std::string mig = "/proc/driver/nvidia/capabilities/gpu1/mig/gi3";
  host_.file(mig + "/access", "DeviceFileMinor: 30\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
  host_.file(mig + "/ci0/access", "DeviceFileMinor: 31\nDeviceFileMode: 292\n");
  host_.file("/proc/devices",
             "Character devices:\n195 nvidia\n239 nvidia-caps\n\nBlock devices:\n");
  host_.node("/dev/nvidia-caps/nvidia-cap30", 239, 30, "0444 0");

  const InjectionPlan plan = plan_injection(host_.tree(), asked("device=0:0"));

  EXPECT_THAT(paths(plan.nodes),
              ElementsAre("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap30",
                          "/dev/nvidia-caps/nvidia-cap31", "/dev/nvidiactl", "/dev/nvidia-uvm"));
  EXPECT_EQ(plan.nodes[2].node.major, 239u);
  EXPECT_FALSE(plan.nodes[2].is_there);
  EXPECT_EQ(plan.mig_layout, "0:gi3/ci0");
}

TEST_F(FiveCards, ParametersInsideForbidToolsToMakeNodes) {
  const InjectionPlan plan = plan_injection(host_.tree(), asked("1"));

  ASSERT_FALSE(plan.texts.empty());
  EXPECT_EQ(plan.texts[0].path, "/proc/driver/nvidia/params");
  EXPECT_THAT(plan.texts[0].content, HasSubstr("ModifyDeviceFiles: 0"));
}

TEST_F(FiveCards, TheLinkerCacheOfTheImageGetsTheDriverFirst) {
  FakeHost image;
  image.cache({"/lib/libc.so.6", "/usr/lib/libcuda.so.1", "/lib/libz.so.1"});
  const Tree tree = image.tree();

  const InjectionPlan plan =
      plan_injection(host_.tree(), asked("1"), &tree, {.library_folder = "/run/yoke/lib"});

  const auto libraries = read_linker_cache(plan.texts.back().content, "cache");
  std::vector<std::string> found;
  for (const CachedLibrary& library : libraries) found.push_back(library.name + " " + library.path);
  EXPECT_THAT(found, Contains("libcuda.so.1 /run/yoke/lib/libcuda.so.1"));
  EXPECT_THAT(found, Contains("libc.so.6 /lib/libc.so.6"));
  EXPECT_THAT(found, Not(Contains("libcuda.so.1 /usr/lib/libcuda.so.1")));
}

TEST_F(FiveCards, CdiHasACardEachAllOfThemAndNoHook) {
  const CdiSpec spec = cdi_of(plan_injection(host_.tree(), asked("all")));

  const std::string text = write_cdi(spec);
  const CdiSpec again = read_cdi(text, "spec");

  EXPECT_EQ(again.version, "0.6.0");  // annotations
  ASSERT_EQ(again.devices.size(), 6u);
  EXPECT_EQ(again.devices[0].first, "0");
  EXPECT_EQ(again.devices[0].second.nodes[0].path, "/dev/nvidia1");
  EXPECT_EQ(again.devices[5].second.nodes.size(), 5u);
  EXPECT_TRUE(again.edits.others.is_null());
  EXPECT_EQ(write_cdi(again), text);
}

TEST_F(FiveCards, AStaleSpecIsNamedWithItsCause) {
  const auto now = [&] { return plan_injection(host_.tree(), asked("all")); };
  const CdiSpec spec = cdi_of(now());
  EXPECT_EQ(stale_reason(spec, now(), host_.tree()), "");

  host_.file("/proc/driver/nvidia/capabilities/gpu1/mig/gi3/access", "DeviceFileMinor: 30\n");
  host_.file("/proc/driver/nvidia/capabilities/gpu1/mig/gi3/ci0/access", "DeviceFileMinor: 31\n");
  EXPECT_THAT(stale_reason(spec, now(), host_.tree()), HasSubstr("cut anew"));

  host_.driver("570.26", "/usr/lib/x86_64-linux-gnu");
  EXPECT_THAT(stale_reason(spec, now(), host_.tree()),
              HasSubstr("for driver 550.54.14 and the driver is 570.26"));

  std::filesystem::remove(host_.root() / "usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14");
  EXPECT_THAT(stale_reason(spec, now(), host_.tree()), HasSubstr("is gone"));
}

/// Where six kinds of systems keep the driver.
struct Layout {
  const char* name;
  void (*make)(FakeHost&);
  const char* library;  // of the host
  const char* link;     // in the container
  const char* first_node;
};

class DriverLayout : public ::testing::TestWithParam<Layout> {};

TEST_P(DriverLayout, ItsFilesAndNodesAreFound) {
  FakeHost host;
  GetParam().make(host);

  const InjectionPlan plan = plan_injection(host.tree(), asked("all"));

  EXPECT_THAT(hosts(plan), Contains(GetParam().library));
  EXPECT_EQ(link_at(plan, GetParam().link).substr(0, 10), "libcuda.so") << GetParam().link;
  ASSERT_FALSE(plan.nodes.empty());
  EXPECT_EQ(plan.nodes[0].path, GetParam().first_node);
  EXPECT_THAT(hosts(plan), Contains(HasSubstr("nvidia-smi")));
  EXPECT_THAT(plan.warnings, IsEmpty());
}

void make_debian(FakeHost& host) {
  host.driver("525.147.05", "/usr/lib/x86_64-linux-gnu/nvidia/current");
  host.link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/etc/alternatives/glx--libcuda.so.1");
  host.link("/etc/alternatives/glx--libcuda.so.1",
            "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.525.147.05");
  host.cache({"/usr/lib/x86_64-linux-gnu/libcuda.so.1"});
  host.link("/usr/bin/nvidia-smi", "/etc/alternatives/nvidia--nvidia-smi");
  host.link("/etc/alternatives/nvidia--nvidia-smi", "../../usr/lib/nvidia/current/nvidia-smi");
  host.file("/usr/lib/nvidia/current/nvidia-smi");
  host.card(0, 0);
}

void make_ubuntu(FakeHost& host) {
  host.driver("550.54.14", "/usr/lib/x86_64-linux-gnu");
  host.file("/lib/firmware/nvidia/550.54.14/gsp_ga10x.bin");
  host.file("/usr/bin/nvidia-smi");
  host.card(0, 0);
}

void make_rhel(FakeHost& host) {
  host.driver("570.124.06", "/usr/lib64");
  host.cache({"/lib64/libcuda.so.1"});
  host.link("/usr/lib64/libcuda.so.1", "libcuda.so.570.124.06");
  host.link("/lib64", "usr/lib64");
  host.file("/usr/bin/nvidia-smi");
  host.card(0, 0);
}

void make_nixos(FakeHost& host) {
  host.driver("565.77", "/nix/store/abc-nvidia-x11-565.77/lib");
  host.link("/run/opengl-driver", "/nix/store/def-graphics-drivers");
  host.link("/nix/store/def-graphics-drivers/lib", "/nix/store/abc-nvidia-x11-565.77/lib");
  host.file("/nix/store/xyz/bin/nvidia-smi");
  host.link("/run/current-system/sw/bin/nvidia-smi", "/nix/store/xyz/bin/nvidia-smi");
  host.card(0, 0);
}

void make_container_optimized(FakeHost& host) {
  host.driver("535.183.01", "/home/kubernetes/bin/nvidia/lib64");
  host.file("/home/kubernetes/bin/nvidia/bin/nvidia-smi");
  host.card(0, 0);
}

void make_wsl(FakeHost& host) {
  host.node("/dev/dxg", 10, 127);
  host.file("/usr/lib/wsl/lib/libcuda.so.1", library_bytes("libcuda.so.1"));
  host.file("/usr/lib/wsl/lib/libdxcore.so", library_bytes("libdxcore.so"));
  host.file("/usr/lib/wsl/lib/libnvidia-ml.so.1", library_bytes("libnvidia-ml.so.1"));
  host.file("/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libcuda.so.1.1",
            library_bytes("libcuda.so.1"));
  host.file("/usr/lib/wsl/lib/nvidia-smi");
}

INSTANTIATE_TEST_SUITE_P(
    Systems, DriverLayout,
    ::testing::Values(Layout{"Debian", make_debian,
                             "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.525.147.05",
                             "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
                             "/dev/nvidia0"},
                      Layout{"Ubuntu", make_ubuntu, "/lib/firmware/nvidia/550.54.14/gsp_ga10x.bin",
                             "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/dev/nvidia0"},
                      Layout{"Rhel", make_rhel, "/usr/lib64/libcuda.so.570.124.06",
                             "/usr/lib64/libcuda.so", "/dev/nvidia0"},
                      Layout{"NixOs", make_nixos,
                             "/nix/store/abc-nvidia-x11-565.77/lib/libnvidia-ml.so.565.77",
                             "/nix/store/abc-nvidia-x11-565.77/lib/libcuda.so.1", "/dev/nvidia0"},
                      Layout{"ContainerOptimized", make_container_optimized,
                             "/home/kubernetes/bin/nvidia/lib64/libcuda.so.535.183.01",
                             "/home/kubernetes/bin/nvidia/lib64/libcuda.so.1", "/dev/nvidia0"},
                      Layout{"Wsl2", make_wsl, "/usr/lib/wsl/lib/libdxcore.so",
                             "/usr/lib/wsl/lib/libcuda.so", "/dev/dxg"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(Tree, LinksNeverLeadOutOfTheRoot) {
  FakeHost image;
  image.file("/etc/passwd", "inside");
  image.link("/a", "/../../../../etc/passwd");
  image.link("/b", "../../../../../../etc/passwd");
  image.link("/loop", "/loop");
  image.link("/out", "/proc/self/root");

  EXPECT_EQ(image.tree().read("/a"), "inside");
  EXPECT_EQ(image.tree().read("/b"), "inside");
  EXPECT_EQ(image.tree().read("/../../etc/passwd"), "inside");
  EXPECT_EQ(image.tree().resolve("/loop"), std::nullopt);
  EXPECT_EQ(image.tree().resolve("/out/etc/passwd"), std::nullopt);
}

TEST(LinkerCache, LdconfigReadsWhatWeWrite) {
  const std::string program = "/sbin/ldconfig";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "no " << program << " here";
  FakeHost host;
  host.cache({"/run/yoke/driver/lib/libcuda.so.1", "/lib/libc.so.6"});
  const std::string file = (host.root() / "etc/ld.so.cache").string();

  const auto result = core::run_child({.command = {program, "-p", "-C", file}});

  EXPECT_THAT(result.out, HasSubstr("2 libs found"));
  EXPECT_THAT(result.out, HasSubstr("libcuda.so.1 (libc6,"));
  EXPECT_THAT(result.out, HasSubstr("=> /run/yoke/driver/lib/libcuda.so.1"));
}

TEST(LinkerCache, DamagedFilesAreRefused) {
  std::string bytes = write_linker_cache({{"liba.so.1", "/liba.so.1", 0x303, 0},
                                          {"liba.so.10", "/x", 0x303, 0},
                                          {"liba.so.9", "/y", 0x303, 0}});

  const auto libraries = read_linker_cache(bytes, "c");
  EXPECT_EQ(libraries[0].name, "liba.so.10");  // numbers, not letters, and the highest first
  EXPECT_THROW((void)read_linker_cache(bytes.substr(0, bytes.size() - 2), "c"), Error);
  bytes[20] = '\x7f';
  EXPECT_THROW((void)read_linker_cache(bytes, "c"), Error);
  EXPECT_THROW((void)read_linker_cache("other", "c"), Error);
}

struct Damaged {
  const char* text;
  const char* reason;
};

class CdiFault : public ::testing::TestWithParam<Damaged> {};

TEST_P(CdiFault, IsNamed) {
  try {
    (void)read_cdi(GetParam().text, "nvidia.json");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, CdiFault,
    ::testing::Values(
        Damaged{"{}", "no field 'cdiVersion'"},
        Damaged{"cdiVersion: 0.6.0\nkind: a/b\n", "it is YAML"},
        Damaged{R"({"cdiVersion":"0.6.0","kind":"a/b","devices":[],"hooks":[]})",
                "unknown field 'hooks'"},
        Damaged{R"({"cdiVersion":"0.6.0","kind":"ab","devices":[]})", "is not VENDOR/CLASS"},
        Damaged{R"({"cdiVersion":"2.0.0","kind":"a/b","devices":[]})", "CDI version '2.0.0'"},
        Damaged{
            R"({"cdiVersion":"0.5.0","kind":"a/b","devices":[],"containerEdits":{"additionalGids":[4]}})",
            "has fields of 0.7.0"},
        Damaged{
            R"({"cdiVersion":"1.0.0","kind":"a/b","devices":[{"name":"a b","containerEdits":{}}]})",
            "no name of a device"},
        Damaged{
            R"({"cdiVersion":"1.0.0","kind":"a/b","devices":[],"containerEdits":{"mounts":[{"hostPath":1}]}})",
            "not of the right type"}));

TEST(Cdi, ReadsWhatTheToolkitWrites) {
  const CdiSpec spec = read_cdi(
      R"({"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"0","containerEdits":
    {"deviceNodes":[{"path":"/dev/nvidia0"}]}}],"containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"],
    "hooks":[{"hookName":"createContainer","path":"/usr/bin/nvidia-cdi-hook","args":["nvidia-cdi-hook","update-ldcache"]}],
    "mounts":[{"hostPath":"/usr/lib/libcuda.so.535.1","containerPath":"/usr/lib/libcuda.so.535.1","options":["ro"]}]}})",
      "nvidia.json");

  EXPECT_EQ(spec.devices[0].second.nodes[0].path, "/dev/nvidia0");
  EXPECT_EQ(spec.edits.others["hooks"].size(), 1u);
  FakeHost host;
  host.file("/usr/lib/libcuda.so.535.1");
  EXPECT_THAT(stale_reason(spec, {.driver = "550.1"}, host.tree()),
              HasSubstr("the driver is 550.1"));
}

}  // namespace
}  // namespace yoke::image
