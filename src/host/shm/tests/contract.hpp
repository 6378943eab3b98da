#pragma once

#include <ostream>

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace yoke::shm::testing {

enum class Ranks { threads, processes };

struct Setting {
  Ranks ranks{Ranks::threads};
  int size{1};
};

inline std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  return out << setting.size << (setting.ranks == Ranks::threads ? "Threads" : "Processes");
}

/// What every team promises, whatever its ranks are: the cases are in contract.cpp.
class Contract : public ::testing::TestWithParam<Setting> {
 protected:
  static int size() { return GetParam().size; }
  static std::vector<Outcome> run(const Body& body, const TeamOptions& options = small_options()) {
    if (GetParam().ranks == Ranks::threads) return run_threads(size(), body, options);
    return run_processes(size(), body, options);
  }
};

inline std::string setting_name(const ::testing::TestParamInfo<Setting>& info) {
  return ::testing::PrintToString(info.param);
}

}  // namespace yoke::shm::testing
