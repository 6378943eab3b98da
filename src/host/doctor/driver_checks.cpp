#include <algorithm>
#include <cctype>
#include <map>
#include <system_error>

#include "checks.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::text;
using std::chrono::milliseconds;

Finding no_card() { return skip("no NVIDIA card here"); }

Finding bus(const Machine& machine) {
  const DriverFacts& driver = machine.driver();
  if (!driver.any()) return pass("no NVIDIA card: training runs on the CPU");
  if (driver.wsl) return pass("cards through Windows' driver (/dev/dxg)");
  return pass(text("NVIDIA cards on the bus: ", driver.pci_cards,
                   driver.switches ? ", joined by NVSwitch" : ""));
}

Finding module(const Machine& machine) {
  const DriverFacts& driver = machine.driver();
  if (!driver.any()) return no_card();
  if (driver.module) return pass("kernel module " + driver.module->text());
  if (driver.wsl) return pass("Windows' driver");
  if (driver.nouveau)
    return fail("the driver nouveau has the cards, which cannot compute",
                "install NVIDIA's driver and restart");
  return fail(
      text("NVIDIA cards on the bus: ", driver.pci_cards, ", and the kernel module is not loaded"),
      "install NVIDIA's driver, or run: modprobe nvidia");
}

/// Whether the module that /proc shows is that of a host around this container.
bool in_container(const Machine& machine) {
  for (const char* mark : {"/.dockerenv", "/run/.containerenv", "/.singularity.d"}) {
    std::error_code failed;
    if (fs::exists(machine.at(mark), failed)) return true;
  }
  return false;
}

Finding nodes(const Machine& machine) {
  const DriverFacts& driver = machine.driver();
  if (!driver.any()) return no_card();
  if (driver.wsl) return pass("/dev/dxg");
  if (driver.card_nodes == 0 && in_container(machine))
    return fail("the host has a driver, and no card came into this container",
                "start it with --gpus all (docker) or --device nvidia.com/gpu=all (podman)");
  if (driver.card_nodes == 0 || !driver.control_node)
    return fail(text("/dev has ", driver.card_nodes, " card nodes and ",
                     driver.control_node ? "/dev/nvidiactl" : "no /dev/nvidiactl"),
                "run nvidia-smi or nvidia-modprobe once as root: it makes them");
  if (!driver.memory_node)
    return fail("no /dev/nvidia-uvm: CUDA fails with error 999 although nvidia-smi works",
                "on the host: nvidia-modprobe -u -c0, before the container starts");
  return pass(text("/dev/nvidia0 and on: ", driver.card_nodes, ", nvidiactl, nvidia-uvm"));
}

Finding library(const Machine& machine) {
  const DriverFacts& driver = machine.driver();
  if (!driver.any()) return no_card();
  if (driver.library_file.empty())
    return fail("no libcuda.so.1 where the loader looks",
                "install the driver's libraries; in a container: NVIDIA_DRIVER_CAPABILITIES="
                "compute,utility");
  const std::string what = driver.library_file.string();
  if (!driver.library) return pass(what + ", version not read");
  if (driver.module && *driver.library != *driver.module)
    return fail(text("libcuda ", driver.library->text(), " (", what, ") and kernel module ",
                     driver.module->text(), " differ: CUDA fails with error 803"),
                "restart the machine or container after a driver update; remove a cuda-compat that "
                "does not belong here");
  return pass(text("libcuda ", driver.library->text()));
}

Finding management(const Machine& machine) {
  if (!machine.driver().any()) return no_card();
  const CardsFacts& cards = machine.cards();
  if (!cards.why_not.empty() && cards.why_not.find("Unknown Error") != std::string::npos)
    return fail(cards.why_not + ": the container lost its right to the devices",
                "start it anew with the devices in its specification (CDI or --device), not by a "
                "hook alone");
  if (!cards.why_not.empty()) return fail(cards.why_not, "run nvidia-smi: it shows the reason");
  std::map<std::string, int> names;
  for (const device::Card& card : cards.all) ++names[card.name];
  std::vector<std::string> parts;
  for (const auto& [card, count] : names) parts.push_back(text(count, " x ", card));
  return pass(parts.empty() ? "no card" : core::joined(parts));
}

Finding visible(const Machine& machine) {
  const auto variable = machine.variables().find("CUDA_VISIBLE_DEVICES");
  if (!machine.driver().any()) return no_card();
  const CardsFacts& cards = machine.cards();
  if (!cards.variable_error.empty()) return fail(cards.variable_error, "write more of the UUID");
  if (!cards.why_not.empty()) return skip("NVML does not answer");
  if (variable == machine.variables().end())
    return pass(text("all ", cards.all.size(), " cards; CUDA_VISIBLE_DEVICES is not set"));
  const std::string what = text("CUDA_VISIBLE_DEVICES='", variable->second, "' leaves ",
                                cards.visible.cards.size(), " of ", cards.all.size(), " cards");
  std::vector<std::string> remarks = cards.visible.warnings;
  if (!cards.visible.ended_by.empty()) remarks.push_back(cards.visible.ended_by);
  const std::string all = remarks.empty() ? what : what + ": " + core::joined(remarks, "; ");
  if (cards.visible.cards.empty()) return fail(all);
  return remarks.empty() ? pass(all) : warn(all);
}

bool runs(const Machine& machine, std::string_view program) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(machine.at("/proc"), failed)) {
    const std::string number = entry.path().filename().string();
    if (!core::parse_integer(number)) continue;
    const auto command = machine.text_of("/proc/" + number + "/comm");
    // The kernel keeps 15 characters of a name.
    if (command && core::trimmed(*command) == program.substr(0, 15)) return true;
  }
  return false;
}

Finding fabric(const Machine& machine) {
  if (!machine.driver().switches) return skip("no NVSwitch here");
  if (runs(machine, "nv-fabricmanager")) return pass("the fabric manager runs");
  std::error_code failed;
  if (fs::exists(machine.at("/run/nvidia-fabricmanager"), failed))
    return pass("the fabric manager's socket is here");
  if (in_container(machine)) return skip("not seen from inside a container");
  return fail("NVSwitch without a running fabric manager: CUDA fails with error 802",
              "systemctl start nvidia-fabricmanager, of the driver's version");
}

/// "0000:1b:00.0" of NVML's "00000000:1B:00.0".
std::string bus_folder(std::string id) {
  if (id.size() > 12) id = id.substr(id.size() - 12);
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return id;
}

Finding placement(const Machine& machine) {
  if (!machine.driver().any()) return no_card();
  const CardsFacts& cards = machine.cards();
  if (cards.all.size() < 2) return skip("fewer than two cards");
  std::map<std::string, std::vector<std::string>> by_node;
  for (const device::Card& card : cards.all) {
    const auto node =
        machine.text_of("/sys/bus/pci/devices/" + bus_folder(card.bus_id) + "/numa_node");
    by_node[node ? std::string(core::trimmed(*node)) : "?"].push_back(std::to_string(card.index));
  }
  std::vector<std::string> parts;
  for (const auto& [node, indices] : by_node)
    parts.push_back(text("NUMA node ", node, ": cards ", core::joined(indices, " ")));
  return pass(core::joined(parts, "; ") + (machine.driver().switches ? "; NVSwitch" : ""));
}

Finding compat(const Machine& machine) {
  const DriverFacts& driver = machine.driver();
  if (!driver.compat) return skip("no package cuda-compat here");
  for (const device::Card& card : machine.cards().all) {
    if (machine.facts_of(card).kind == stack::CardClass::consumer)
      return warn(text(driver.compat->string(), " does not serve ", card.name,
                       ": where it is loaded CUDA fails with error 804"),
                  "remove the package cuda-compat, or update the driver");
  }
  return pass(driver.compat->string());
}

}  // namespace

std::vector<Check> driver_checks() {
  return {
      {"driver.bus", "cards", Weight::hurts, milliseconds(200), bus, ""},
      {"driver.module", "kernel module", Weight::blocks, milliseconds(200), module, ""},
      {"driver.nodes", "device nodes", Weight::blocks, milliseconds(200), nodes, ""},
      {"driver.library", "driver library", Weight::blocks, milliseconds(200), library, ""},
      {"driver.nvml", "cards through NVML", Weight::blocks, milliseconds(500), management, ""},
      {"driver.visible", "visible cards", Weight::blocks, milliseconds(500), visible,
       "unset CUDA_VISIBLE_DEVICES, or list cards that are there, each once"},
      {"driver.fabric", "fabric manager", Weight::blocks, milliseconds(200), fabric, ""},
      {"driver.placement", "links and NUMA", Weight::hurts, milliseconds(200), placement, ""},
      {"driver.compat", "package cuda-compat", Weight::hurts, milliseconds(200), compat, ""},
  };
}

}  // namespace yoke::doctor
