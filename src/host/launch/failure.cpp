#include "yoke/launch/failure.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <utility>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::Json;
using core::text;

constexpr double kFollowSeconds = 5.0;
constexpr std::size_t kMostLines = 8;

// How a rank's error reads when another rank went away, lower case: Gloo, NCCL, c10d's store, the
// system.
constexpr std::array<std::string_view, 9> kLostContact{
    "connection closed",        "connection reset",
    "connection refused",       "broken pipe",
    "socket timeout",           "timed out waiting",
    "communicator was aborted", "watchdog caught collective",
    "remote process exited"};

std::string lower(std::string_view words) {
  std::string out(words);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool lost_contact(const Failure& failure) {
  if (failure.signal != 0) return false;
  if (failure.code == "peer_lost" || failure.code == "timeout") return true;
  const std::string words = lower(failure.message);
  return std::any_of(kLostContact.begin(), kLostContact.end(),
                     [&](std::string_view sign) { return words.find(sign) != std::string::npos; });
}

std::string seconds_text(double seconds) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.1f s", seconds);
  return out.data();
}

/// A rank's message without the stack that LibTorch puts behind it.
std::string essence(std::string_view message) {
  std::string out;
  std::size_t lines = 0;
  for (const std::string& line : core::split(message, '\n')) {
    if (line.starts_with("Exception raised from") || lines == kMostLines) break;
    if (core::trimmed(line).empty()) continue;
    if (lines++ > 0) out += "\n  ";
    out += line;
  }
  return out;
}

std::string ending(const Failure& failure) {
  if (failure.signal != 0) return text("killed by ", core::signal_name(failure.signal));
  if (failure.exit_code == 0) return "stood still";  // and was ended for it
  return text("exited with code ", failure.exit_code);
}

std::string hint_for_ending(const Failure& failure) {
  if (failure.signal == SIGKILL) return "possibly out of memory: read the kernel's log (dmesg)";
  if (failure.signal == SIGBUS) return "possibly /dev/shm is full";
  return "read what it printed above";
}

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// The members by which torchrun reads a worker's error, and ours behind them.
Json to_error_file(const Failure& failure) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const auto exact = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const Json extra{{"py_callstack", failure.message}, {"timestamp", std::to_string(seconds)}};
  return Json{{"message", {{"message", failure.message}, {"extraInfo", extra}, {"errorCode", 1}}},
              {"code", failure.code},
              {"error", failure.message},
              {"hint", failure.hint},
              {"rank", failure.rank},
              {"host", failure.host},
              {"time_ns", exact}};
}

Failure failure_of(const std::exception& error, const core::EnvironmentMap& variables) {
  Failure failure;
  failure.host = own_host();
  failure.rank =
      static_cast<int>(core::parse_integer(core::value_or(variables, "RANK", "0")).value_or(0));
  failure.exit_code = 1;
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    failure.code = core::name(ours->code());
    failure.message = ours->cause().empty()
                          ? ours->message()
                          : text(ours->message(), " (cause: ", ours->cause(), ")");
    failure.hint = ours->hint();
  } else {
    failure.message = error.what();
  }
  return failure;
}

std::string string_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace

Json to_json(const Failure& failure) {
  return Json{{"rank", failure.rank},
              {"host", failure.host},
              {"exit_code", failure.exit_code},
              {"signal", failure.signal},
              {"signal_name", failure.signal == 0 ? "" : core::signal_name(failure.signal)},
              {"code", failure.code},
              {"message", failure.message},
              {"hint", failure.hint},
              {"seconds", failure.seconds},
              {"last_step", failure.last_step}};
}

Failure failure_from_json(const Json& object) {
  const auto number = [&](const char* key, int fallback) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? found->get<int>() : fallback;
  };
  Failure failure;
  if (!object.is_object()) return failure;
  failure.rank = number("rank", -1);
  failure.host = string_at(object, "host");
  failure.exit_code = number("exit_code", 0);
  failure.signal = number("signal", 0);
  failure.code = string_at(object, "code");
  failure.message = string_at(object, "message");
  failure.hint = string_at(object, "hint");
  failure.last_step = string_at(object, "last_step");
  if (const auto time = object.find("seconds"); time != object.end() && time->is_number())
    failure.seconds = time->get<double>();
  return failure;
}

void choose_root_cause(std::vector<Failure> failures, Outcome& outcome) {
  if (failures.empty()) return;
  std::stable_sort(failures.begin(), failures.end(),
                   [](const Failure& a, const Failure& b) { return a.seconds < b.seconds; });
  auto cause = failures.begin();
  if (lost_contact(*cause)) {
    const double latest = cause->seconds + kFollowSeconds;
    const auto better = std::find_if(failures.begin(), failures.end(), [&](const Failure& other) {
      return !lost_contact(other) && other.seconds <= latest;
    });
    if (better != failures.end()) cause = better;
  }
  outcome.root_cause = std::move(*cause);
  failures.erase(cause);
  outcome.follow_ups = std::move(failures);
}

std::string describe(const Failure& failure) {
  const std::string who = failure.rank < 0
                              ? std::string("launcher")
                              : text("rank ", failure.rank, " (host ", failure.host, ")");
  if (failure.message.empty()) {
    const std::string where = failure.last_step.empty() ? "" : ", " + failure.last_step;
    return text(who, ": ", ending(failure), " after ", seconds_text(failure.seconds), where, " / ",
                hint_for_ending(failure));
  }
  std::string_view message = failure.message;
  const std::string again = text("rank ", failure.rank, ": ");
  if (message.starts_with(again)) message.remove_prefix(again.size());
  const std::string words = text(who, ": ", essence(std::string(message)));
  return failure.hint.empty() ? words : text(words, " / ", failure.hint);
}

void report_failure(const std::exception& error, const core::EnvironmentMap& variables) noexcept
    try {
  const std::string error_file = core::value_or(variables, "TORCHELASTIC_ERROR_FILE");
  const Failure failure = failure_of(error, variables);
  if (!error_file.empty()) {
    struct stat info{};
    if (::stat(error_file.c_str(), &info) == 0 && info.st_size > 0) return;
    core::write_atomically(error_file, core::json_line(to_error_file(failure)));
    return;
  }
  const std::string alone = core::value_or(variables, "YOKE_FAILURE_FILE");
  if (alone.empty()) return;
  Outcome outcome{.exit_code = 1};
  outcome.root_cause = failure;
  write_failure_file(alone, outcome, core::value_or(variables, "YOKE_JOB_ID"));
} catch (const std::exception& second) {
  core::say(core::Level::warning,
            text("the error could not be left for the launcher: ", second.what()));
}

std::optional<Failure> read_error_file(const std::filesystem::path& path) try {
  const std::string bytes = core::read_file(path);
  const Json whole = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_object()) return std::nullopt;
  Failure failure;
  failure.code = string_at(whole, "code");
  failure.message = string_at(whole, "error");
  failure.hint = string_at(whole, "hint");
  if (failure.message.empty() && whole.contains("message")) {
    // Python's @record writes an object; a worker that died early, a plain string.
    const Json& message = whole["message"];
    failure.message =
        message.is_string() ? message.get<std::string>() : string_at(message, "message");
  }
  if (failure.message.empty()) return std::nullopt;
  if (const auto time = whole.find("time_ns"); time != whole.end() && time->is_number_integer())
    failure.time_ns = time->get<std::int64_t>();
  return failure;
} catch (const Error&) {
  return std::nullopt;  // the rank left none
}

void write_failure_file(const std::filesystem::path& path, const Outcome& outcome,
                        const std::string& job_id) {
  Json follow_ups = Json::array();
  for (const Failure& failure : outcome.follow_ups) follow_ups.push_back(to_json(failure));
  Json earlier = Json::array();
  for (const Failure& failure : outcome.earlier) earlier.push_back(to_json(failure));
  const Json whole{
      {"version", 1},
      {"job", job_id},
      {"exit_code", outcome.exit_code},
      {"root_cause", outcome.root_cause ? to_json(*outcome.root_cause) : Json(nullptr)},
      {"follow_ups", follow_ups},
      {"stopped", outcome.stopped},
      {"earlier_attempts", earlier}};
  if (path.has_parent_path()) core::make_writable_folder(path.parent_path());
  core::write_atomically(path, core::json_text(whole));
}

}  // namespace yoke::launch
