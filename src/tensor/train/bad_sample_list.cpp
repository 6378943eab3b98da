#include "bad_sample_list.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/start/run_folder.hpp"

namespace yoke::train {
namespace {

constexpr int kMostSaid = 10;

// In one write, so that lines of several ranks do not mix.
void append_line(const std::filesystem::path& file, const std::string& line) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written = descriptor >= 0 && ::write(descriptor, line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (written) return;
  throw Error(Code::io,
              core::text("write ", file.string(), ": ", std::generic_category().message(error)));
}

}  // namespace

OnBadSample bad_sample_list(const std::filesystem::path& run_folder, int rank) {
  return [run_folder, rank,
          said = std::make_shared<std::atomic<int>>(0)](const feed::BadSample& sample) {
    const int before = (*said)++;
    if (before < kMostSaid) {
      core::say(core::Level::warning,
                core::text("sample ", sample.index, " (", sample.origin, "): ", sample.reason));
    } else if (before == kMostSaid) {
      core::say(core::Level::warning, "more samples are bad; they are not said any more");
    }
    if (run_folder.empty()) return;
    const core::Json line{{"version", 1},
                          {"rank", rank},
                          {"index", sample.index},
                          {"origin", sample.origin},
                          {"reason", sample.reason}};
    append_line(run_folder / start::RunFiles::kBadSamples, core::json_line(line) + "\n");
  };
}

}  // namespace yoke::train
