#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace yoke::launch {

/// Which of a rank's two streams something is about; torchrun's numbers.
enum class Streams : unsigned { none = 0, out = 1, err = 2, both = 3 };

/// One choice for all local ranks, or one each: torchrun's "3" or "0:1,1:2".
struct StreamChoice {
  Streams all{Streams::none};
  std::map<int, Streams> by_local_rank{};

  [[nodiscard]] bool has(int local_rank, Streams stream) const;
  [[nodiscard]] bool empty() const { return all == Streams::none && by_local_rank.empty(); }
};

/// Errors: invalid_argument, quoting `value` and `option`.
[[nodiscard]] StreamChoice stream_choice(std::string_view value, const std::string& option);

/// Ranks between commas, with ranges: "0,3,8-11".
/// Errors: invalid_argument, quoting `value` and `option`.
[[nodiscard]] std::set<int> rank_set(std::string_view value, const std::string& option);

/// Where the words of the ranks go. With nothing set they write to the launcher's own streams.
struct OutputOptions {
  /// FOLDER/JOB/attempt_N/RANK/stdout.log and stderr.log, which the ranks write themselves: whole
  /// to the last byte, whatever becomes of the launcher. Without `redirects` and `tee` all of it
  /// goes there and to the console.
  std::filesystem::path folder{};
  StreamChoice redirects{};                     ///< to the files only
  StreamChoice tee{};                           ///< to the files and to the console
  std::optional<std::set<int>> show{};          ///< global ranks on the console; absent: all
  std::optional<std::set<int>> local_filter{};  ///< local ranks on the console; absent: all
  bool prefix{false};                           ///< "[r1] " before each line, also without files
};

}  // namespace yoke::launch
