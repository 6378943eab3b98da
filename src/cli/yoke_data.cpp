// yoke-data: looks at data, packs and measures them. docs/cmd/data.md.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "data_bench.hpp"
#include "data_options.hpp"
#include "data_reports.hpp"
#include "program_main.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"
#include "yoke/feed/feed.hpp"

namespace yoke::cli {
namespace {

// A line that is written over on a terminal; nothing through a pipe.
class Progress {
 public:
  explicit Progress(std::int64_t total) : total_(total), shown_(::isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::int64_t done) const {
    if (!shown_) return;
    constexpr std::int64_t kWidth = 30;
    const auto filled = static_cast<std::size_t>(kWidth * done / std::max<std::int64_t>(1, total_));
    std::string bar(filled, '#');
    bar.resize(kWidth, '.');
    std::fputs(core::text("\r[", bar, "] ", done, " of ", total_).c_str(), stderr);
  }

 private:
  std::int64_t total_;
  bool shown_;
};

unsigned workers_of(const DataRequest& request) {
  return request.workers > 0 ? request.workers : static_cast<unsigned>(device::usable_cores());
}

void print(const core::Json& report, bool json) {
  const std::string text = json ? core::json_line(report) + "\n" : report_text(report);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error(Code::io, "write the report: standard output does not take it");
  }
}

int look(const DataRequest& request) {
  if (const auto other = other_data_json(request.path)) {
    print(*other, request.json);
    return 0;
  }
  const auto images = feed::open_images(request.path);
  const feed::Survey survey = [&] {
    const Progress progress(images->size());
    return feed::survey(*images, {.decode = request.action == DataAction::verify,
                                  .workers = workers_of(request),
                                  .progress = [&](std::int64_t done) { progress.show(done); }});
  }();
  print(survey_json(*images, survey), request.json);
  return survey.broken.empty() ? 0 : 1;
}

int pack(DataRequest request) {
  const auto images = feed::open_images(request.path);
  request.pack.workers = workers_of(request);
  const feed::PackReport report = [&] {
    const Progress progress(images->size());
    request.pack.progress = [&](std::int64_t done) { progress.show(done); };
    return feed::pack(*images, request.target, request.pack);
  }();
  print(pack_json(report), request.json);
  return 0;
}

int bench(const DataRequest& request) {
  const std::shared_ptr<const feed::EncodedImages> images = feed::open_images(request.path);
  print(bench_data(images, {.seconds = request.seconds, .workers = workers_of(request)}),
        request.json);
  return 0;
}

int run(const std::vector<std::string>& words) {
  const DataRequest request = parse_data(words);
  switch (request.action) {
    case DataAction::help: return std::fputs(data_usage().data(), stdout) < 0 ? 1 : 0;
    case DataAction::inspect:
    case DataAction::verify: return look(request);
    case DataAction::pack: return pack(request);
    case DataAction::bench: return bench(request);
  }
  return 1;
}

}  // namespace
}  // namespace yoke::cli

int main(int argc, char** argv) { return yoke::cli::program_main(argc, argv, yoke::cli::run); }
