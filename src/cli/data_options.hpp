#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/feed/pack.hpp"

namespace yoke::cli {

enum class DataAction { help, inspect, verify, pack, bench };

struct DataRequest {
  DataAction action = DataAction::help;
  std::filesystem::path path{};
  std::filesystem::path target{};  ///< pack
  feed::PackOptions pack{};
  unsigned workers = 0;  ///< 0: one for each core that this process may use
  double seconds = 3;    ///< bench: of each measurement
  bool json = false;
};

/// Errors: invalid_argument, which quotes the word.
[[nodiscard]] DataRequest parse_data(const std::vector<std::string>& words);

[[nodiscard]] std::string_view data_usage();

}  // namespace yoke::cli
