#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "build_facts.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

/// What a release of a distribution ships. Sources: its package lists.
struct System {
  std::string_view name;
  std::string_view glibc;
  std::string_view python;
  std::string_view pip;  // empty: 21 or newer
  bool managed_externally;
};

constexpr std::array kSystems{
    System{"ubuntu16.04", "2.23", "3.5", "8.1.1", false},
    System{"ubuntu18.04", "2.27", "3.6", "9.0.1", false},
    System{"ubuntu20.04", "2.31", "3.8", "20.0.2", false},
    System{"ubuntu22.04", "2.35", "3.10", "", false},
    System{"ubuntu24.04", "2.39", "3.12", "", true},
    System{"debian9", "2.24", "3.5", "9.0.1", false},
    System{"debian10", "2.28", "3.7", "18.1", false},
    System{"debian11", "2.31", "3.9", "", false},
    System{"debian12", "2.36", "3.11", "", true},
    System{"debian13", "2.41", "3.13", "", true},
    System{"el7", "2.17", "3.6", "9.0.3", false},
    System{"el8", "2.28", "3.6", "9.0.3", false},
    System{"el9", "2.34", "3.9", "", false},
    System{"alpine", "", "", "", true},
};

struct Alias {
  std::string_view word;
  std::string_view system;
};

constexpr std::array kCodeNames{
    Alias{"xenial", "ubuntu16.04"},
    Alias{"bionic", "ubuntu18.04"},
    Alias{"focal", "ubuntu20.04"},
    Alias{"jammy", "ubuntu22.04"},
    Alias{"noble", "ubuntu24.04"},
    Alias{"stretch", "debian9"},
    Alias{"buster", "debian10"},
    Alias{"bullseye", "debian11"},
    Alias{"bookworm", "debian12"},
    Alias{"trixie", "debian13"},
    Alias{"alpine", "alpine"},
    Alias{"ubuntu16.04", "ubuntu16.04"},
    Alias{"ubuntu18.04", "ubuntu18.04"},
    Alias{"ubuntu20.04", "ubuntu20.04"},
    Alias{"ubuntu22.04", "ubuntu22.04"},
    Alias{"ubuntu24.04", "ubuntu24.04"},
    Alias{"centos7", "el7"},
    Alias{"ubi8", "el8"},
    Alias{"ubi9", "el9"},
    Alias{"rockylinux8", "el8"},
    Alias{"rockylinux9", "el9"},
};

std::string system_in_tag(std::string_view tag) {
  for (const std::string& part : core::split(tag, '-')) {
    for (const Alias& alias : kCodeNames) {
      if (part == alias.word || (alias.word == "alpine" && part.starts_with("alpine"))) {
        return std::string(alias.system);
      }
    }
  }
  return {};
}

std::string leading_number(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](char byte) {
    return std::isdigit(static_cast<unsigned char>(byte)) != 0 || byte == '.';
  });
  return {text.begin(), end};
}

std::string system_of(const std::string& repository, const std::string& tag) {
  const std::string number = leading_number(tag);
  const std::string major = number.substr(0, number.find('.'));
  if (repository == "ubuntu" && !number.empty()) return "ubuntu" + number;
  if (repository == "debian" && !major.empty()) return "debian" + major;
  if (repository == "alpine") return "alpine";
  if (repository == "centos" || repository == "rockylinux" || repository == "almalinux") {
    return major.empty() ? "" : "el" + major;
  }
  return system_in_tag(tag);
}

void take_system(BaseFacts& facts) {
  const auto* found = std::find_if(kSystems.begin(), kSystems.end(), [&](const System& system) {
    return system.name == facts.system;
  });
  if (found == kSystems.end()) return;
  facts.glibc = found->glibc;
  facts.python = found->python;
  facts.pip = found->pip;
  facts.managed_externally = found->managed_externally;
}

/// "3.10-slim-bookworm" of python, whose pip is recent and free to install.
void take_python(BaseFacts& facts) {
  const std::vector<std::string> numbers = core::split(leading_number(facts.tag), '.');
  facts.python = numbers.size() >= 2 ? numbers[0] + "." + numbers[1] : "";
  facts.pip.clear();
  facts.managed_externally = false;
}

/// "11.8.0-cudnn8-devel-ubuntu20.04" of nvidia/cuda.
void take_cuda(BaseFacts& facts) {
  facts.cuda = leading_number(facts.tag);
  for (const std::string& part : core::split(facts.tag, '-')) {
    if (part == "base" || part == "runtime" || part == "devel") facts.flavour = part;
  }
}

/// "2.6.0-cuda12.4-cudnn9-devel" of pytorch/pytorch, whose Python changed over time.
void take_pytorch(BaseFacts& facts) {
  facts.torch = leading_number(facts.tag);
  facts.python.clear();
  facts.pip.clear();
  facts.managed_externally = false;
  for (const std::string& part : core::split(facts.tag, '-')) {
    if (part.starts_with("cuda")) facts.cuda = part.substr(4);
    if (part == "runtime" || part == "devel") facts.flavour = part;
  }
}

std::string without_default_registry(std::string name) {
  for (const std::string_view prefix : {"docker.io/", "index.docker.io/", "library/"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  return name;
}

}  // namespace

BaseFacts base_facts(const Word& base) {
  BaseFacts facts;
  facts.is_known = base.text.find('$') == std::string::npos;
  std::string name = without_default_registry(base.text);
  if (const std::size_t at = name.find('@'); at != std::string::npos) {
    facts.has_digest = true;
    name.resize(at);
  }
  const std::size_t slash = name.rfind('/');
  const std::size_t colon = name.find(':', slash == std::string::npos ? 0 : slash);
  facts.repository = name.substr(0, colon);
  if (colon != std::string::npos) {
    facts.tag = name.substr(colon + 1);
  } else if (!facts.has_digest) {
    facts.tag = "latest";
  }
  facts.system = system_of(facts.repository, facts.tag);
  if (facts.repository == "python" && facts.system.empty()) facts.system = "debian12";
  take_system(facts);
  if (facts.repository == "python") take_python(facts);
  if (facts.repository == "nvidia/cuda" || facts.repository == "nvcr.io/nvidia/cuda")
    take_cuda(facts);
  if (facts.repository == "pytorch/pytorch") take_pytorch(facts);
  return facts;
}

}  // namespace yoke::image
