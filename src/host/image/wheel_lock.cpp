#include "yoke/image/wheel_lock.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/stack/requirement.hpp"

namespace yoke::image {
namespace {

using core::text;

constexpr std::string_view kHashOption = "--hash=sha256:";
constexpr std::size_t kHashDigits = 64;

bool is_hash(std::string_view digits) {
  return digits.size() == kHashDigits &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Reads the logical lines of a requirements file.
class LockReader {
 public:
  LockReader(std::string_view all, std::string_view what) : what_(what) {
    std::string line;
    for (const std::string& piece : core::split(all, '\n')) {
      ++number_;
      const std::string inner(core::trimmed(piece));
      if (inner.starts_with('#')) {
        heading(inner);
        continue;
      }
      line += inner;
      if (line.ends_with('\\')) {
        line.back() = ' ';
        continue;
      }
      wheel(std::exchange(line, {}));
    }
    wheel(line);
  }

  WheelLock take() { return std::move(out_); }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::corrupt_data, text("read ", what_, ": line ", number_, ": ", why),
                "make it with yoke image lock, or pip-compile --generate-hashes");
  }

  /// "# torch 2.9.1+cu128"; a sentence that begins alike is a comment.
  void heading(const std::string& line) {
    for (const auto& [key, value] :
         {std::pair("# torch ", &out_.torch), std::pair("# python ", &out_.python)}) {
      if (!line.starts_with(key) || !value->empty()) continue;
      const std::string rest(core::trimmed(line.substr(std::string_view(key).size())));
      if (stack::Version::parse(rest)) *value = rest;
    }
  }

  void wheel(const std::string& line) {
    if (core::trimmed(line).empty()) return;
    LockedWheel wheel;
    for (const std::string& word : core::split(line, ' ')) {
      if (word.empty()) continue;
      if (word.starts_with(kHashOption)) {
        wheel.hashes.push_back(word.substr(kHashOption.size()));
        if (!is_hash(wheel.hashes.back())) refuse(text("'", word, "' is no sha256"));
      } else if (wheel.name.empty()) {
        name(wheel, word);
      } else {
        refuse(text("'", word, "' is not --hash=sha256:..."));
      }
    }
    if (wheel.hashes.empty()) refuse(text(wheel.name, " has no hash"));
    if (out_.find(wheel.name) != nullptr) refuse(text(wheel.name, " stands twice"));
    out_.wheels.push_back(std::move(wheel));
  }

  void name(LockedWheel& wheel, const std::string& word) const {
    const std::size_t equals = word.find("==");
    if (equals == std::string::npos || equals == 0)
      refuse(text("'", word, "' is not NAME==VERSION"));
    wheel.name = stack::canonical_name(word.substr(0, equals));
    wheel.version = word.substr(equals + 2);
    if (!stack::Version::parse(wheel.version)) refuse(text("'", wheel.version, "' is no version"));
  }

  std::string_view what_;
  int number_ = 0;
  WheelLock out_;
};

std::string entry(const LockedWheel& wheel) {
  std::string out = text(wheel.name, "==", wheel.version);
  for (const std::string& hash : wheel.hashes) out += text(" \\\n    ", kHashOption, hash);
  return out + "\n";
}

}  // namespace

const LockedWheel* WheelLock::find(std::string_view name) const {
  const auto found = std::find_if(wheels.begin(), wheels.end(),
                                  [&](const LockedWheel& wheel) { return wheel.name == name; });
  return found == wheels.end() ? nullptr : &*found;
}

WheelLock read_lock(std::string_view text, std::string_view what) {
  return LockReader(text, what).take();
}

WheelLock lock_of_report(std::string_view report, std::string_view what) try {
  const core::Json json = core::parse_json(report, what);
  WheelLock lock;
  for (const core::Json& item : json.at("install")) {
    const core::Json& about = item.at("metadata");
    const std::string hash = item.at("download_info").at("archive_info").at("hashes").at("sha256");
    lock.wheels.push_back({.name = stack::canonical_name(about.at("name").get<std::string>()),
                           .version = about.at("version"),
                           .hashes = {hash}});
  }
  std::sort(lock.wheels.begin(), lock.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.name < b.name; });
  return lock;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, text("read ", what, ": not a report of pip: ", error.what()));
}

std::string lock_of_layer(const WheelLock& lock, const ImageParts& parts, std::string_view layer) {
  std::string out;
  for (const LockedWheel& wheel : lock.wheels) {
    if (parts.layer_of(wheel.name) == layer) out += entry(wheel);
  }
  return out;
}

std::string write_lock(const WheelLock& lock, const ImageParts& parts) {
  std::string out = text("# Written by yoke image; not edited by hand.\n# torch ", lock.torch,
                         "\n# python ", lock.python, "\n");
  for (const std::string& layer : parts.order) {
    const std::string wheels = lock_of_layer(lock, parts, layer);
    if (!wheels.empty()) out += text("\n# layer ", layer, "\n", wheels);
  }
  return out;
}

}  // namespace yoke::image
