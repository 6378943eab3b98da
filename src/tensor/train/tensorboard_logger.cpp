#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include "append_file.hpp"
#include "event_record.hpp"
#include "yoke/core/text.hpp"
#include "yoke/train/file_loggers.hpp"

namespace yoke::train {
namespace {

double seconds(core::Clock::Wall time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// TensorBoard takes files whose name holds "tfevents"; the rest keeps two runs in one folder apart.
std::string event_file_name(core::Clock::Wall now) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'h', 'o', 's', 't'};
  return core::text("events.out.tfevents.", static_cast<std::int64_t>(seconds(now)), '.',
                    host.data(), '.', ::getpid(), ".0");
}

class TensorBoardLogger final : public Logger {
 public:
  TensorBoardLogger(const std::filesystem::path& folder, const core::Clock& clock)
      : file_(folder / event_file_name(clock.wall())), clock_(clock) {}

  void begin(const RunFacts& run) override {
    file_.append(tf_record(version_event(seconds(clock_.wall()))));
    file_.append(tf_record(start_event(seconds(clock_.wall()), run.resumed_at + 1)));
  }

  void scalars(const Scalars& record) override {
    file_.append(tf_record(scalars_event(seconds(clock_.wall()), record.step, record.values)));
  }

  void end(const RunEnd&) override {}

 private:
  AppendFile file_;
  const core::Clock& clock_;
};

}  // namespace

std::shared_ptr<Logger> tensorboard_logger(const std::filesystem::path& folder,
                                           const core::Clock& clock) {
  return std::make_shared<TensorBoardLogger>(folder, clock);
}

}  // namespace yoke::train
