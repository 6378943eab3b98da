#include "fake_machine.hpp"

#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::doctor {

void FakeMachine::add_cards(int count, const std::string& name, const std::string& driver) {
  cards = device::FakeNvml::cards(count);
  scratch.write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + driver +
                    "  Wed Jan 1 00:00:00 UTC 2025\nGCC version: 12.2.0\n");
  for (const char* node : {"dev/nvidiactl", "dev/nvidia-uvm"}) scratch.write(node);
  scratch.write("usr/lib/x86_64-linux-gnu/libcuda.so." + driver);
  scratch.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so." + driver);
  for (int i = 0; i < count; ++i) {
    cards[static_cast<std::size_t>(i)].name = name;
    scratch.write(core::text("dev/nvidia", i));
    const std::string bus = core::text("sys/bus/pci/devices/0000:", 10 + i, ":00.0/");
    scratch.write(bus + "vendor", "0x10de\n");
    scratch.write(bus + "class", "0x030200\n");
    scratch.write(bus + "numa_node", core::text(i / 4, "\n"));
  }
}

void FakeMachine::add_python(const std::string& version) {
  site = "venv/lib/python" + version + "/site-packages/";
  scratch.write("venv/pyvenv.cfg", "home = /usr/bin\nversion = " + version + ".1\n");
  scratch.write(site + "README.txt");
  variables["VIRTUAL_ENV"] = "/venv";
}

void FakeMachine::add_torch(const std::string& version, const std::string& cuda,
                            const std::string& pins) {
  scratch.write(site + "torch/version.py", "__version__ = '" + version + "'\ncuda = " +
                                               (cuda == "none" ? "None" : "'" + cuda + "'") + "\n");
  const std::string bare = stack::Version::parse(version)->without_local().text();
  scratch.write(site + "torch-" + bare + ".dist-info/METADATA", "Name: torch\n" + pins + "\n");
}

void FakeMachine::add_package(const std::string& name, const std::string& version) {
  scratch.write(site + name + "/version.py", "__version__ = '" + version + "'\n");
  const std::string bare = stack::Version::parse(version)->without_local().text();
  scratch.write(site + name + "-" + bare + ".dist-info/METADATA", "Name: " + name + "\n");
}

std::shared_ptr<const Machine> FakeMachine::machine() const {
  const auto open = [all = cards, error = nvml_error] {
    if (!error.empty() || all.empty())
      return device::NvmlOpened{.why_not = error.empty() ? "no libnvidia-ml.so.1" : error};
    return device::NvmlOpened{.nvml = std::make_unique<device::FakeNvml>(all)};
  };
  return std::make_shared<const Machine>(
      Sources{.root = scratch.folder(), .variables = variables, .open_nvml = open});
}

Finding FakeMachine::find(const std::string& id) const {
  const Report report = run_checks(select(all_checks(), {.only = {id}}), machine());
  return report.results.at(0).finding;
}

}  // namespace yoke::doctor
