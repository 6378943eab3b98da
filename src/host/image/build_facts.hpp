#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/dockerfile.hpp"
#include "yoke/image/requirements.hpp"
#include "yoke/image/shell_words.hpp"

namespace yoke::image {

// What a base image holds, as far as its name tells.
struct BaseFacts {
  std::string
      repository{};   // "nvidia/cuda", "python", "pytorch/pytorch"; without docker.io/library
  std::string tag{};  // "latest" where none is written and no digest
  bool has_digest = false;
  bool is_known = true;             // false: a variable is left in it
  std::string system{};             // "ubuntu20.04", "debian12", "el8", "alpine"; empty: not known
  std::string glibc{};              // "2.31"
  std::string python{};             // of the system or of the image: "3.8"
  std::string pip{};                // of the system's package: "20.0.2"; empty: recent or not known
  std::string cuda{};               // nvidia/cuda: "11.8.0"; pytorch/pytorch: "12.4"
  std::string flavour{};            // nvidia/cuda: base, runtime, devel
  std::string torch{};              // pytorch/pytorch: "2.6.0"
  bool managed_externally = false;  // the system's pip refuses to install (PEP 668)
};

[[nodiscard]] BaseFacts base_facts(const Word& base);

// One `pip install` (or uv pip install), or a whole requirements file.
struct PipInstall {
  Span where{};                             // of the command
  Span program{};                           // of its last word before the arguments: install
  std::vector<Requirement> requirements{};  // those for Linux
  std::vector<RequirementOption> options{};
  std::string python{};  // as the command tells: "3.11"; empty: the default one
  bool is_uv = false;
  bool upgrades = false;       // -U, --upgrade
  bool breaks_system = false;  // --break-system-packages
  bool by_path = false;        // run as /opt/venv/bin/pip
  bool without_dependencies = false;

  [[nodiscard]] const Requirement* find(std::string_view name) const;
  // The values of --index-url, --extra-index-url and --find-links.
  [[nodiscard]] std::vector<std::string> indexes() const;
};

// One build stage, with what the stages below it left.
struct StageFacts {
  BaseFacts base{};
  Word base_word{};
  std::string platform{};
  std::vector<const Instruction*> instructions{};  // of its own
  std::vector<PipInstall> installs{};              // in order, with those of the stages below
  std::vector<ShellCommand> commands{};            // of its own
  Variables variables{};                           // at its end
  std::string python{};           // which interpreter a plain `pip` meets; empty: not known
  bool has_own_pip = false;       // pip was brought up to date, or comes from elsewhere
  bool has_venv = false;          // a venv or conda stands before the system's Python
  bool has_pip_settings = false;  // a pip.conf is copied in: its index is not known
  bool compiles_cuda = false;     // nvcc is needed while the image is built
  std::size_t first_own_install = 0;
};

[[nodiscard]] std::vector<StageFacts> stage_facts(const Dockerfile& file);

// The install that a requirements file stands for.
[[nodiscard]] PipInstall install_of(const RequirementsFile& file);

}  // namespace yoke::image
