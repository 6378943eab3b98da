#include "inventory_text.hpp"

#include <vector>

#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::Json;
using core::text;

std::string part_text(const char* name, const std::optional<stack::LibraryVersion>& version) {
  return version ? text(", ", name, " ", version->version.text(), " (", version->told_by, ")")
                 : text(", ", name, " not read");
}

std::string code_text(const std::optional<stack::CodeArchs>& code) {
  if (!code) return "  code for cards: not read\n";
  std::string out =
      "  code for " + stack::arch_list(code->archs) + (code->ptx ? " + PTX" : ", no PTX");
  if (!code->partly.empty()) out += ", some kernels for " + stack::arch_list(code->partly) + " too";
  return out + "\n";
}

std::string version_text(const std::optional<stack::Version>& version) {
  return version ? version->text() : "not read";
}

std::string torch_text(const Installed& installed) {
  const stack::TorchCopy* torch = installed.inventory.torch();
  if (torch == nullptr) return "no torch in these folders\n";
  std::string out =
      text("torch ", version_text(torch->version), " in ", torch->folder.string(), "\n  CUDA ",
           torch->cuda.value_or("not read"), part_text("cuDNN", installed.cudnn),
           part_text("NCCL", installed.nccl), "\n");
  const auto& libraries = installed.libraries;
  if (!libraries) return out;
  if (torch->cuda != stack::kNone) out += code_text(libraries->code);
  return out + text("  string ABI ", libraries->abi ? name(*libraries->abi) : "not read",
                    "; needs glibc ", version_text(libraries->glibc), ", GLIBCXX_",
                    version_text(libraries->glibcxx), "\n");
}

Json version_json(const std::optional<stack::Version>& version) {
  return version ? Json(version->text()) : Json(nullptr);
}

Json part_json(const std::optional<stack::LibraryVersion>& version) {
  if (!version) return nullptr;
  return {{"version", version->version.text()}, {"told_by", version->told_by}};
}

Json archs_json(const std::vector<stack::Arch>& archs) {
  Json out = Json::array();
  for (const stack::Arch& arch : archs) out.push_back(arch.dotted());
  return out;
}

Json libraries_json(const stack::TorchLibraries& libraries) {
  Json out{{"sm", nullptr}, {"sm_partly", nullptr}, {"ptx", nullptr}, {"abi", nullptr}};
  if (libraries.code) {
    out["sm"] = archs_json(libraries.code->archs);
    out["sm_partly"] = archs_json(libraries.code->partly);
    out["ptx"] = libraries.code->ptx;
  }
  if (libraries.abi) out["abi"] = name(*libraries.abi);
  out["glibc"] = version_json(libraries.glibc);
  out["glibcxx"] = version_json(libraries.glibcxx);
  return out;
}

std::vector<std::string> unread(const Installed& installed) {
  std::vector<std::string> out = installed.inventory.unread;
  if (installed.libraries)
    out.insert(out.end(), installed.libraries->unread.begin(), installed.libraries->unread.end());
  return out;
}

}  // namespace

Installed read_installed(const stack::Matrix& matrix, const stack::PythonPlace& python) {
  Installed out{.inventory = stack::take_inventory(python)};
  if (const stack::TorchCopy* torch = out.inventory.torch())
    out.libraries = stack::read_torch_libraries(*torch);
  out.cudnn = stack::built_with(matrix, out.inventory, "cudnn");
  out.nccl = stack::built_with(matrix, out.inventory, "nccl");
  return out;
}

std::string installed_text(const Installed& installed) {
  const stack::PythonPlace& python = installed.inventory.python;
  std::string out = text("Python ", python.version.empty() ? "not found" : python.version);
  if (!python.program.empty()) out += " (" + python.program.string() + ")";
  out += "\n" + torch_text(installed);
  for (const stack::Distribution& distribution : installed.inventory.distributions) {
    if (distribution.name != "torch") out += distribution.name + " " + distribution.version + "\n";
  }
  for (const std::string& words : unread(installed)) out += "not read: " + words + "\n";
  return out;
}

Json installed_json(const Installed& installed) {
  const stack::Inventory& inventory = installed.inventory;
  Json out{{"schema", "yoke.installed/1"},
           {"python", inventory.python.version},
           {"torch", nullptr},
           {"packages", Json::array()},
           {"not_read", unread(installed)}};
  if (const stack::TorchCopy* torch = inventory.torch()) {
    out["torch"] = {{"folder", torch->folder.string()},
                    {"version", version_json(torch->version)},
                    {"cuda", torch->cuda ? Json(*torch->cuda) : Json(nullptr)},
                    {"cudnn", part_json(installed.cudnn)},
                    {"nccl", part_json(installed.nccl)}};
    if (installed.libraries) out["torch"].update(libraries_json(*installed.libraries));
  }
  for (const stack::Distribution& distribution : inventory.distributions) {
    out["packages"].push_back({{"name", distribution.name},
                               {"version", distribution.version},
                               {"record", distribution.record.string()}});
  }
  return out;
}

}  // namespace yoke::cli
