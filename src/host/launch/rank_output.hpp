#pragma once

#include <poll.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "line_relay.hpp"
#include "rank_environment.hpp"
#include "yoke/core/descriptor.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/launch/streams.hpp"

namespace yoke::launch {

// Shows a growing file: whole lines with a prefix, as they are added.
class FileTail {
 public:
  // Begins at the end that the file has now. Errors: io.
  FileTail(const std::filesystem::path& file, std::string prefix, int to);

  void move();    // what was added since
  void finish();  // the same, and the line without an end

 private:
  core::Descriptor file_;
  LinePrefixer prefixer_;
  int to_;
};

// Note [Rank output]
// A rank writes into its log file itself, and the launcher reads that file for the console, so that
// the file is whole also when the launcher is killed or slow. Without a file, lines that want a
// prefix come through a pipe. Otherwise the rank has the launcher's own streams.
class RankOutput {
 public:
  // Makes the files of one attempt. Errors: io.
  RankOutput(const OutputOptions& options, const JobFacts& job,
             const core::EnvironmentMap& variables);

  // What the rank's stream becomes; -1: the launcher's own.
  [[nodiscard]] int descriptor(int local_rank, Streams stream) const;

  // The ranks have theirs.
  void close_rank_ends() noexcept;
  [[nodiscard]] std::vector<int> own_ends() const;

  // For poll(): adds what to wait for; after it, moves what is there.
  void wait_in(std::vector<pollfd>& waiting) const;
  void move();

  // All ranks have ended: the rest.
  void drain();

  // The last lines of a rank's standard error, if that is a file; empty otherwise.
  [[nodiscard]] std::filesystem::path log_folder(int local_rank) const;

 private:
  struct Stream {
    std::optional<LineRelay> relay{};
    core::Descriptor file{};
    std::optional<FileTail> tail{};
  };

  Stream make(const OutputOptions& options, const JobFacts& job, int local_rank, Streams stream,
              const std::string& prefix);

  [[nodiscard]] const Stream& at(int local_rank, Streams stream) const;

  std::filesystem::path folder_;  // of the attempt; empty: no files
  core::Descriptor changes_;      // inotify
  std::deque<Stream> streams_;    // [2 * rank] standard output, [2 * rank + 1] standard error
  int first_rank_ = 0;
};

// "[r1] ", with the host where the job has several, or as TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE
// says.
[[nodiscard]] std::string line_prefix(const JobFacts& job, int local_rank,
                                      const core::EnvironmentMap& variables);

}  // namespace yoke::launch
