#include <algorithm>

#include "checks.hpp"
#include "meanings.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

using core::text;

std::optional<stack::Version> torch_cuda(const Machine& machine) {
  const stack::TorchCopy* torch = machine.installed().torch();
  if (torch == nullptr || !torch->cuda) return std::nullopt;
  return stack::Version::parse(*torch->cuda);
}

/// A failing check that explains the text better than any list of guesses.
bool take_failure(const Machine& machine, Meaning& meaning, std::string_view id) {
  for (const Check& check : all_checks()) {
    if (check.id != id) continue;
    const Finding finding = check.run(machine);
    if (finding.status != Status::fail && finding.status != Status::warn) return false;
    meaning.seen = finding.text;
    meaning.change = finding.fix.empty() ? std::string(check.fix) : finding.fix;
    return true;
  }
  return false;
}

/// 35 means an old driver, or none at all in this container: the words are the same.
void look_for_old_driver(const Machine& machine, Meaning& meaning) {
  const DriverFacts& driver = machine.driver();
  if (!driver.module || driver.card_nodes == 0) {
    if (take_failure(machine, meaning, "driver.nodes")) return;
    meaning.seen = "no NVIDIA driver here";
    return;
  }
  const auto cuda = torch_cuda(machine);
  if (!cuda) {
    meaning.seen = text("driver ", driver.module->text(), "; torch's CUDA was not read");
    return;
  }
  const auto judgement = stack::judge_driver(machine.matrix(), *driver.module, *cuda);
  meaning.seen = judgement.reason;
  if (judgement.runs()) {
    meaning.seen += ", so the driver is new enough: the program brings another CUDA than torch's";
  } else if (judgement.needed) {
    meaning.change = text("a driver from ", judgement.needed->text(),
                          ", or torch for an older CUDA: "
                          "yoke stack resolve --driver ",
                          driver.module->text());
  }
}

void look_for_mixed_driver(const Machine& machine, Meaning& meaning) {
  const DriverFacts& driver = machine.driver();
  if (driver.module && driver.library)
    meaning.seen = text("kernel module ", driver.module->text(), ", libcuda ",
                        driver.library->text(), " (", driver.library_file.string(), ")");
  if (driver.compat) meaning.seen += text("; package cuda-compat: ", driver.compat->string());
}

void look_for_compat(const Machine& machine, Meaning& meaning) {
  std::vector<std::string> parts;
  for (const device::Card& card : machine.cards().all)
    parts.push_back(text(card.name, " (", name(machine.facts_of(card).kind), ")"));
  if (machine.driver().compat) parts.push_back(machine.driver().compat->string());
  meaning.seen = core::joined(parts);
}

void look_for_fabric(const Machine& machine, Meaning& meaning) {
  if (take_failure(machine, meaning, "driver.fabric")) return;
  if (!machine.driver().switches) meaning.seen = "no NVSwitch was seen on the bus here";
}

void look_for_nodes(const Machine& machine, Meaning& meaning) {
  for (const char* id : {"driver.module", "driver.nodes", "driver.library", "driver.visible"}) {
    if (take_failure(machine, meaning, id)) return;
  }
}

/// is_available() is False: in the order in which CUDA would fail.
void look_for_no_cuda(const Machine& machine, Meaning& meaning) {
  if (!machine.driver().any()) {
    meaning.seen = "no NVIDIA card is on the bus and no driver is loaded";
    meaning.change = "run on a machine with a card; in a container: start it with --gpus all";
    return;
  }
  for (const char* id : {"driver.module", "driver.nodes", "driver.library", "stack.flavour",
                         "driver.visible", "stack.driver", "driver.fabric"}) {
    if (take_failure(machine, meaning, id)) return;
  }
  meaning.seen = "driver, device nodes, wheel and CUDA_VISIBLE_DEVICES are all well here";
}

void look_for_code(const Machine& machine, Meaning& meaning) {
  static_cast<void>(take_failure(machine, meaning, "stack.code"));
}

void look_for_shared_memory(const Machine& machine, Meaning& meaning) {
  static_cast<void>(take_failure(machine, meaning, "host.shm"));
}

void look_for_shadows(const Machine& machine, Meaning& meaning) {
  static_cast<void>(take_failure(machine, meaning, "stack.shadow"));
}

void look_for_torchvision(const Machine& machine, Meaning& meaning) {
  static_cast<void>(take_failure(machine, meaning, "stack.torchvision"));
}

void look_for_nccl(const Machine& machine, Meaning& meaning) {
  static_cast<void>(take_failure(machine, meaning, "stack.nccl"));
}

void look_for_libraries(const Machine& machine, Meaning& meaning) {
  for (const char* id : {"stack.libstdcxx", "stack.glibc"}) {
    if (take_failure(machine, meaning, id)) return;
  }
}

void look_for_numpy(const Machine& machine, Meaning& meaning) {
  static_cast<void>(take_failure(machine, meaning, "stack.numpy"));
}

}  // namespace

std::vector<KnownText> driver_texts() {
  return {
      {"cuda-35",
       {"error 35", "code 35", "cudaerrorinsufficientdriver", "driver version is insufficient",
        "driver on your system is too old"},
       "CUDA error 35: the driver is older than the program's CUDA needs, or no driver came in at "
       "all",
       "a newer driver, or torch for an older CUDA: yoke stack resolve names it",
       look_for_old_driver},
      {"cuda-100",
       {"error 100", "code 100", "cudaerrornodevice", "no cuda-capable device"},
       "CUDA error 100: there is a driver and no card that this process may use",
       "unset CUDA_VISIBLE_DEVICES; in a container: --gpus all",
       look_for_nodes},
      {"cuda-802",
       {"error 802", "code 802", "cudaerrorsystemnotready", "system not yet initialized"},
       "CUDA error 802: the cards hang on NVSwitch, and the fabric manager is not running",
       "systemctl start nvidia-fabricmanager, of the driver's version",
       look_for_fabric},
      {"cuda-803",
       {"error 803", "code 803", "cudaerrorsystemdrivermismatch",
        "unsupported display driver / cuda driver combination", "driver/library version mismatch"},
       "CUDA error 803: the user-space driver library and the kernel module are of different "
       "versions; the driver is not too old",
       "restart the machine or the container after a driver update; remove a package cuda-compat "
       "of "
       "another version",
       look_for_mixed_driver},
      {"cuda-804",
       {"error 804", "code 804", "cudaerrorcompatnotsupportedondevice",
        "forward compatibility was attempted"},
       "CUDA error 804: the package cuda-compat is loaded on a card that it does not serve; only "
       "data-centre cards take it",
       "remove the package cuda-compat (rm -r /usr/local/cuda/compat), or update the driver",
       look_for_compat},
      {"cuda-999",
       {"error 999", "code 999", "cudaerrorunknown", "cuda unknown error"},
       "CUDA error 999: mostly /dev/nvidia-uvm is missing, while nvidia-smi works",
       "on the host: nvidia-modprobe -u -c0, before the container starts",
       look_for_nodes},
      {"nvml-unknown",
       {"failed to initialize nvml: unknown error", "nvml: unknown error"},
       "the container lost its right to the devices: a reload of systemd wrote the device rules "
       "anew, "
       "without what a hook had added",
       "start it with the devices in its specification: --device nvidia.com/gpu=all (CDI), or "
       "--device /dev/nvidia0 and its neighbours",
       look_for_nodes},
      {"no-driver",
       {"found no nvidia driver", "nvidia-smi has failed",
        "couldn't communicate with the nvidia driver"},
       "no NVIDIA driver is loaded where this runs",
       "install the driver on the host; in a container: --gpus all",
       look_for_no_cuda},
      {"no-kernel-image",
       {"no kernel image is available", "is not compatible with the current pytorch installation"},
       "the wheel has no machine code for this card",
       "the wheel for another CUDA: yoke stack resolve --gpu NAME",
       look_for_code},
      {"shared-memory",
       {"bus error", "unable to open shared memory object", "no space left on device (28) & shm",
        "insufficient shared memory", "dataloader worker & bus"},
       "a worker of the loader wrote beyond /dev/shm, which is 64 MB in a plain container",
       "start the container with --ipc=host or --shm-size=8g; Kubernetes: a memory-backed emptyDir "
       "at "
       "/dev/shm",
       look_for_shared_memory},
      {"nvjitlink",
       {"undefined symbol & nvjitlink"},
       "LD_LIBRARY_PATH leads to an older libnvJitLink than the one that the wheel brings",
       "unset LD_LIBRARY_PATH",
       look_for_shadows},
      {"nccl-symbol",
       {"undefined symbol: nccl", "ncclcommregister", "ncclmemfree"},
       "an older NCCL than torch's is loaded: of a second package, or of the system",
       "pip uninstall the other nvidia-nccl package; unset LD_LIBRARY_PATH",
       look_for_nccl},
      {"torchvision-nms",
       {"operator torchvision::nms does not exist"},
       "torchvision was built for another torch",
       "install both in one command, with the pair of the table: yoke stack show",
       look_for_torchvision},
      {"glibcxx",
       {"glibcxx_ & not found", "glibc_ & not found"},
       "an older C or C++ library is loaded than the one that a wheel was built with",
       "take the older library from LD_LIBRARY_PATH; else a newer distribution or an image",
       look_for_libraries},
      {"string-abi",
       {"undefined reference to `c10::", "undefined symbol: _zn3c10",
        "std::__cxx11::basic_string & undefined"},
       "the program and torch were compiled with different string ABIs, or against another torch",
       "compile with -D_GLIBCXX_USE_CXX11_ABI as torch has it: yoke doctor --only stack.abi"},
      {"numpy-abi",
       {"compiled using numpy 1.x cannot be run in numpy 2", "_array_api not found"},
       "a module that was built against NumPy 1 meets NumPy 2",
       "pip install 'numpy<2'",
       look_for_numpy},
      {"pip-no-match",
       {"no matching distribution found for torch",
        "could not find a version that satisfies the requirement torch"},
       "pip sees no wheel: this Python is too old or too new, pip is older than 20.3, or a +cu "
       "version "
       "was asked for without its index",
       "yoke stack explain \"torch==...\" --python VERSION names which"},
      {"docker-gpus",
       {"could not select device driver & gpu"},
       "docker knows no way to hand over cards",
       "install nvidia-container-toolkit and restart the docker daemon"},
  };
}

}  // namespace yoke::doctor
