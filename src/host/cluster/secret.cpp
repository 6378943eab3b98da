#include "yoke/cluster/secret.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

#include "yoke/cluster/sha256.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr std::size_t kFewestBytes = 16;

std::string random_text() {
  std::array<char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(Code::io, text("make a secret: ", std::generic_category().message(errno)));
  return hex(sha256({bytes.data(), bytes.size()}));
}

std::string checked(std::string bytes, const std::string& source) {
  bytes = core::trimmed(bytes);
  if (bytes.size() >= kFewestBytes) return bytes;
  throw Error(Code::invalid_argument,
              text("the secret in ", source, " has ", bytes.size(), " bytes; it needs ",
                   kFewestBytes, " at least"),
              "make one: (umask 077; head -c 32 /dev/urandom | base64 >FILE)");
}

Secret from_file(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) == 0 && (info.st_mode & 077U) != 0) {
    throw Error(Code::invalid_argument,
                text("the secret file ", file.string(), " may be read by others"),
                text("chmod 600 ", file.string()));
  }
  return {checked(core::read_file(file), file.string()), file.string()};
}

Secret from_input() {
  std::string line;
  char byte = 0;
  while (line.size() < 4096 && ::read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') line += byte;
  return {checked(line, "standard input"), "standard input"};
}

/// Two agents that start at once on machines with one home agree: the link is made by one only.
void make_file(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path own = text(file.string(), ".", ::getpid());
  const int descriptor = ::open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const std::string words = random_text() + "\n";
  const bool written = descriptor >= 0 && ::write(descriptor, words.data(), words.size()) ==
                                              static_cast<ssize_t>(words.size());
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  const bool linked = written && (::link(own.c_str(), file.c_str()) == 0 || errno == EEXIST);
  ::unlink(own.c_str());
  if (linked) return;
  throw Error(
      Code::io,
      text("make the secret file ", file.string(), ": ", std::generic_category().message(reason)),
      "set YOKE_SECRET on every machine, or give --secret-file");
}

}  // namespace

Secret find_secret(const fs::path& file, const core::EnvironmentMap& variables) {
  if (file == "-") return from_input();
  if (!file.empty()) return from_file(file);
  if (const std::string own = core::value_or(variables, "YOKE_SECRET"); !own.empty())
    return {checked(own, "$YOKE_SECRET"), "$YOKE_SECRET"};
  const std::string home = core::value_or(variables, "HOME", "/");
  const fs::path usual =
      fs::path(core::value_or(variables, "XDG_CONFIG_HOME", home + "/.config")) / "yoke" / "secret";
  if (!fs::exists(usual)) make_file(usual);
  return from_file(usual);
}

std::string job_key(const Secret& secret, const std::string& job_id) {
  return hex(hmac_sha256(secret.bytes, "yoke job " + job_id));
}

}  // namespace yoke::cluster
