#include "rank_output.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
using core::text;

[[noreturn]] void fail(const char* doing, const fs::path& path) {
  throw Error(Code::io,
              text(doing, " ", path.string(), ": ", std::generic_category().message(errno)),
              "give --log-dir a folder that may be written");
}

/// Appends: a job that its scheduler starts again under the same name keeps what it had said.
core::Descriptor open_log(const fs::path& path) {
  core::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.is_open()) fail("create", path);
  return file;
}

fs::path temporary_folder(const core::EnvironmentMap& variables) {
  std::string pattern = core::value_or(variables, "TMPDIR", "/tmp") + "/yoke-logs-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) fail("create", pattern);
  return pattern;
}

bool needs_files(const OutputOptions& options) {
  return !options.folder.empty() || !options.redirects.empty() || !options.tee.empty() ||
         options.show || options.local_filter;
}

std::string replaced(std::string words, const std::string& name, const std::string& value) {
  for (std::size_t at = 0; (at = words.find(name, at)) != std::string::npos; at += value.size())
    words.replace(at, name.size(), value);
  return words;
}

}  // namespace

FileTail::FileTail(const fs::path& file, std::string prefix, int to)
    : file_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), prefixer_(std::move(prefix)), to_(to) {
  if (!file_.is_open()) fail("read", file);
  ::lseek(file_.get(), 0, SEEK_END);
}

void FileTail::move() {
  std::array<char, 1 << 16> block;
  ssize_t n = 0;
  while ((n = ::read(file_.get(), block.data(), block.size())) > 0)
    write_all(to_, prefixer_.add({block.data(), static_cast<std::size_t>(n)}));
}

void FileTail::finish() {
  move();
  write_all(to_, prefixer_.finish());
}

RankOutput::RankOutput(const OutputOptions& options, const JobFacts& job,
                       const core::EnvironmentMap& variables)
    : first_rank_(job.placement.first_rank) {
  if (needs_files(options)) {
    fs::path folder = options.folder;
    if (folder.empty()) {
      folder = temporary_folder(variables);
      core::say(core::Level::info, text("the ranks' output is kept in ", folder.string()));
    }
    folder_ = folder / job.id / text("attempt_", job.placement.attempt);
    changes_ = core::Descriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!changes_.is_open()) fail("watch", folder_);
  }
  for (int rank = 0; rank < job.ranks; ++rank) {
    if (!folder_.empty()) {
      std::error_code error;
      fs::create_directories(log_folder(rank), error);
      if (error) {
        throw Error(Code::io, text("create ", log_folder(rank).string(), ": ", error.message()),
                    "give --log-dir a folder that may be written");
      }
    }
    const std::string prefix = line_prefix(job, rank, variables);
    streams_.push_back(make(options, job, rank, Streams::out, prefix));
    streams_.push_back(make(options, job, rank, Streams::err, prefix));
  }
}

RankOutput::Stream RankOutput::make(const OutputOptions& options, const JobFacts& job,
                                    int local_rank, Streams stream, const std::string& prefix) {
  Stream made;
  const int console = stream == Streams::out ? STDOUT_FILENO : STDERR_FILENO;
  const int rank = job.placement.first_rank + local_rank;
  const bool shown = (!options.show || options.show->count(rank) != 0) &&
                     (!options.local_filter || options.local_filter->count(local_rank) != 0);
  const bool said = !options.redirects.empty() || !options.tee.empty();
  const bool redirected = options.redirects.has(local_rank, stream);
  const bool teed = options.tee.has(local_rank, stream);
  const bool filed = !folder_.empty() && (redirected || teed || !said || !shown);
  if (filed) {
    const fs::path path =
        log_folder(local_rank) / (stream == Streams::out ? "stdout.log" : "stderr.log");
    made.file = open_log(path);
    if (shown && (teed || !redirected)) {
      made.tail.emplace(path, prefix, console);
      ::inotify_add_watch(changes_.get(), path.c_str(), IN_MODIFY);
    }
  } else if (options.prefix || !folder_.empty()) {
    made.relay.emplace(prefix, console);
  }
  return made;
}

fs::path RankOutput::log_folder(int local_rank) const {
  return folder_.empty() ? fs::path{} : folder_ / std::to_string(first_rank_ + local_rank);
}

const RankOutput::Stream& RankOutput::at(int local_rank, Streams stream) const {
  return streams_[static_cast<std::size_t>(2 * local_rank) + (stream == Streams::err ? 1 : 0)];
}

int RankOutput::descriptor(int local_rank, Streams stream) const {
  const Stream& one = at(local_rank, stream);
  return one.relay ? one.relay->write_end() : one.file.get();
}

void RankOutput::close_rank_ends() noexcept {
  for (Stream& stream : streams_) {
    if (stream.relay) stream.relay->close_write_end();
    stream.file.close();
  }
}

std::vector<int> RankOutput::own_ends() const {
  std::vector<int> ends;
  for (const Stream& stream : streams_) {
    if (stream.relay) ends.push_back(stream.relay->read_end());
  }
  return ends;
}

void RankOutput::wait_in(std::vector<pollfd>& waiting) const {
  if (changes_.is_open()) waiting.push_back({changes_.get(), POLLIN, 0});
  for (const Stream& stream : streams_) {
    if (stream.relay && stream.relay->is_open())
      waiting.push_back({stream.relay->read_end(), POLLIN, 0});
  }
}

void RankOutput::move() {
  std::array<char, 4096> events;
  bool changed = false;
  while (changes_.is_open() && ::read(changes_.get(), events.data(), events.size()) > 0)
    changed = true;
  for (Stream& stream : streams_) {
    if (stream.relay && stream.relay->is_open()) stream.relay->move();
    if (stream.tail && changed) stream.tail->move();
  }
}

void RankOutput::drain() {
  for (Stream& stream : streams_) {
    if (stream.relay) stream.relay->drain();
    if (stream.tail) stream.tail->finish();
  }
}

std::string line_prefix(const JobFacts& job, int local_rank,
                        const core::EnvironmentMap& variables) {
  const std::string rank = std::to_string(job.placement.first_rank + local_rank);
  std::string words = core::value_or(variables, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (words.empty())
    return job.placement.node_count > 1 ? text("[", job.host, " r", rank, "] ")
                                        : text("[r", rank, "] ");
  words = replaced(words, "${role_name}", job.role);
  words = replaced(words, "${local_rank}", std::to_string(local_rank));
  return replaced(words, "${rank}", rank);
}

}  // namespace yoke::launch
