#include "yoke/doctor/machine.hpp"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::text;

/// A value that is made once. Who asks while it is being made gets an error and does not wait: the
/// maker was given up at its time limit.
template <class Value>
class Once {
 public:
  template <class Make>
  const Value& get(const char* what, const Make& make) {
    std::unique_lock lock(mutex_);
    if (value_) return *value_;
    if (making_) throw Error(Code::timeout, text(what, ": no answer yet"));
    making_ = true;
    lock.unlock();
    std::optional<Value> made;
    try {
      made = make();
    } catch (...) {
      lock.lock();
      making_ = false;
      throw;
    }
    lock.lock();
    value_ = std::move(made);
    making_ = false;
    return *value_;
  }

 private:
  std::mutex mutex_;
  bool making_ = false;
  std::optional<Value> value_;
};

bool is_there(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

/// "570.124.06" of NVIDIA's line in /proc/driver/nvidia/version.
std::optional<stack::Version> module_version(const std::string& lines) {
  for (const std::string& word : core::split(core::split(lines, '\n').front(), ' ')) {
    const bool number = !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
                        word.find('.') != std::string::npos;
    if (!number) continue;
    if (auto version = stack::Version::parse(word)) return version;
  }
  return std::nullopt;
}

bool is_card_node(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

class DriverReader {
 public:
  explicit DriverReader(const Machine& machine) : machine_(machine) {}

  DriverFacts read() {
    if (const auto lines = machine_.text_of("/proc/driver/nvidia/version"))
      out_.module = module_version(*lines);
    out_.control_node = is_there(machine_.at("/dev/nvidiactl"));
    out_.memory_node = is_there(machine_.at("/dev/nvidia-uvm"));
    out_.wsl = is_there(machine_.at("/dev/dxg"));
    out_.nouveau = is_there(machine_.at("/sys/module/nouveau"));
    count_nodes();
    count_bus();
    find_library();
    find_compat();
    return std::move(out_);
  }

 private:
  void count_nodes() {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(machine_.at("/dev"), failed)) {
      if (is_card_node(entry.path().filename().string())) ++out_.card_nodes;
    }
  }

  void count_bus() {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(machine_.at("/sys/bus/pci/devices"), failed)) {
      const std::string vendor = bus_word(entry.path() / "vendor");
      const std::string kind = bus_word(entry.path() / "class");
      if (vendor != "0x10de") continue;
      if (kind.starts_with("0x03")) ++out_.pci_cards;  // display controllers, also without a plug
      if (kind.starts_with("0x0680")) out_.switches = true;  // bridges: NVSwitch
    }
  }

  [[nodiscard]] static std::string bus_word(const fs::path& file) try {
    return std::string(core::trimmed(core::read_file(file)));
  } catch (const Error&) {
    return "";
  }

  void find_library() {
    auto places = stack::system_places(ld_library_path(machine_), machine_.root());
    places.push_back({.folder = machine_.at("/usr/lib/wsl/lib"), .from = "WSL"});
    const auto found = stack::find_library("libcuda.so.1", places);
    if (found.empty()) return;
    out_.library_file = found.front().file;
    std::error_code failed;
    const fs::path real = fs::canonical(out_.library_file, failed);
    constexpr std::string_view kPrefix = "libcuda.so.";
    const std::string name = real.filename().string();
    if (!failed && name.starts_with(kPrefix) && name.size() > kPrefix.size() + 1)
      out_.library = stack::Version::parse(std::string_view(name).substr(kPrefix.size()));
  }

  void find_compat() {
    const fs::path file = machine_.at("/usr/local/cuda/compat/libcuda.so.1");
    if (is_there(file)) out_.compat = file;
  }

  const Machine& machine_;
  DriverFacts out_;
};

/// Below another root the library lies there too; the loader's own search would find this
/// machine's.
device::NvmlOpened open_nvml_below(const fs::path& root, const std::string& variable) {
  if (root == "/") return device::open_nvml();
  const auto found = stack::find_library("libnvidia-ml.so.1", stack::system_places(variable, root));
  if (found.empty()) return {.why_not = text("no libnvidia-ml.so.1 below ", root.string())};
  return device::open_nvml(found.front().file.string());
}

CardsFacts read_cards(const Sources& sources) {
  CardsFacts out;
  const device::NvmlOpened opened = sources.open_nvml();
  if (!opened.nvml) {
    out.why_not = opened.why_not;
    return out;
  }
  try {
    for (int i = 0; i < opened.nvml->count(); ++i) out.all.push_back(opened.nvml->card(i));
  } catch (const Error& error) {
    out.why_not = error.message();
    return out;
  }
  try {
    out.visible = device::visible_cards(sources.variables, *opened.nvml);
  } catch (const Error& error) {
    out.variable_error = error.message();
  }
  return out;
}

}  // namespace

struct Machine::State {
  Once<DriverFacts> driver;
  Once<CardsFacts> cards;
  Once<stack::Inventory> installed;
  Once<stack::TorchLibraries> libraries;
};

Machine::Machine(Sources sources)
    : sources_(std::move(sources)), state_(std::make_unique<State>()) {
  if (sources_.matrix == nullptr) sources_.matrix = &stack::Matrix::built_in();
  if (sources_.open_nvml) return;
  sources_.open_nvml = [root = sources_.root, variable = ld_library_path(*this)] {
    return open_nvml_below(root, variable);
  };
}

Machine::~Machine() = default;

const DriverFacts& Machine::driver() const {
  return state_->driver.get("read the driver's files",
                            [this] { return DriverReader(*this).read(); });
}

const CardsFacts& Machine::cards() const {
  return state_->cards.get("ask NVML for the cards", [this] { return read_cards(sources_); });
}

const stack::Inventory& Machine::installed() const {
  return state_->installed.get("list Python's packages", [this] {
    return stack::take_inventory(stack::find_python(sources_.variables, sources_.root));
  });
}

const stack::TorchLibraries& Machine::torch_libraries() const {
  const stack::TorchCopy* torch = installed().torch();
  return state_->libraries.get("read torch's libraries", [torch] {
    return torch == nullptr ? stack::TorchLibraries{} : stack::read_torch_libraries(*torch);
  });
}

stack::CardFacts Machine::facts_of(const device::Card& card) const {
  const stack::CardKind* known = matrix().card(card.name);
  stack::CardFacts out{.arch = stack::Arch::parse(card.capability)};
  if (known != nullptr) {
    out.kind = known->kind;
    if (!out.arch) out.arch = known->arch;
  }
  return out;
}

fs::path Machine::at(const fs::path& path) const { return sources_.root / path.relative_path(); }

std::optional<std::string> Machine::text_of(const fs::path& path) const try {
  return core::read_file(at(path));
} catch (const Error&) {
  return std::nullopt;
}

std::string ld_library_path(const Machine& machine) {
  return core::value_or(machine.variables(), "LD_LIBRARY_PATH");
}

}  // namespace yoke::doctor
