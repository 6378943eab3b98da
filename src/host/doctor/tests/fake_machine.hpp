#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scratch.hpp"
#include "yoke/device/fake_nvml.hpp"
#include "yoke/doctor/doctor.hpp"

namespace yoke::doctor {

/// A machine in a folder: files are written, then it is looked at.
class FakeMachine {
 public:
  /// A machine with `count` cards of this name and a driver that fits itself.
  void add_cards(int count, const std::string& name = "NVIDIA H200",
                 const std::string& driver = "580.95.05");

  /// A virtual environment, active, with this Python.
  void add_python(const std::string& version = "3.12");

  /// torch in it, with its record and pins; `cuda`: "12.8", or "none".
  void add_torch(const std::string& version, const std::string& cuda, const std::string& pins = "");

  /// Another package in it: record and version.py.
  void add_package(const std::string& name, const std::string& version);

  stack::Scratch scratch;
  std::string site = "venv/lib/python3.12/site-packages/";
  core::EnvironmentMap variables{{"PATH", "/usr/bin"}};
  std::vector<device::Card> cards;
  std::string nvml_error;  ///< not empty: NVML does not open

  [[nodiscard]] std::shared_ptr<const Machine> machine() const;

  /// What one check finds on it.
  [[nodiscard]] Finding find(const std::string& id) const;
};

}  // namespace yoke::doctor
