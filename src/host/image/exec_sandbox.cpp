#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/sandbox.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

[[noreturn]] void fail(const std::string& doing) {
  throw Error(Code::unsupported, text("start the sandbox: ", doing, ": ", std::strerror(errno)),
              "run as root, allow user name spaces, or pass --writable");
}

void write_line(const std::string& file, const std::string& line) {
  std::ofstream out(file);
  out << line;
  out.close();
  if (!out) fail("write " + file);
}

/// A name space of our own for mounts; a user who is not root becomes root in one for users.
void enter_namespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (uid == 0) {
    if (::unshare(CLONE_NEWNS) != 0) fail("a name space for mounts");
  } else {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) fail("name spaces for users and mounts");
    write_line("/proc/self/setgroups", "deny");
    write_line("/proc/self/uid_map", text("0 ", uid, " 1"));
    write_line("/proc/self/gid_map", text("0 ", gid, " 1"));
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    fail("keep mounts to ourselves");
}

/// An option of overlayfs ends at a comma, and its list of folders parts at colons.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char byte : path) {
    if (byte == '\\' || byte == ',' || byte == ':') out += '\\';
    out += byte;
  }
  return out;
}

/// Lays memory over the root folder and returns where both appear as one.
std::string overlay(const std::string& root) {
  // The mount point is shared by all sandboxes: each sees only its own mount there.
  const fs::path base = core::cache_folder() / "sandbox";
  fs::create_directories(base);
  enter_namespaces();
  if (::mount("tmpfs", base.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0)
    fail("mount memory");
  for (const char* name : {"upper", "work", "root"}) fs::create_directory(base / name);
  const std::string options =
      text("lowerdir=", escaped(root), ",upperdir=", escaped(base / "upper"),
           ",workdir=", escaped(base / "work"));
  if (::mount("overlay", (base / "root").c_str(), "overlay", MS_NODEV, options.c_str()) != 0)
    fail("mount an overlay");
  return base / "root";
}

/// A descriptor that holds the text, for bubblewrap to read.
int descriptor_of(const InjectedText& file) {
  const int descriptor = ::memfd_create("yoke", 0);
  if (descriptor < 0) fail("keep " + file.path);
  const auto written = ::write(descriptor, file.content.data(), file.content.size());
  if (written != static_cast<ssize_t>(file.content.size())) fail("keep " + file.path);
  ::lseek(descriptor, 0, SEEK_SET);
  return descriptor;
}

void quiet_input() {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
}

}  // namespace

void exec_sandbox(const Sandbox& sandbox, const RunRequest& request, const std::string& root) {
  std::vector<std::string> words = sandbox.command;
  if (!request.writable) {
    const std::string merged = overlay(root);
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (words[i] == "--bind" && words[i + 2] == "/") words[i + 1] = merged;
    }
  }
  for (const InjectedText& file : sandbox.texts) {
    words.insert(words.end(), {"--perms", "0644", "--ro-bind-data",
                               std::to_string(descriptor_of(file)), file.path});
  }
  words.emplace_back("--");
  words.insert(words.end(), sandbox.program.begin(), sandbox.program.end());
  if (!request.interactive) quiet_input();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw Error(Code::not_found, text("start the sandbox: bwrap: ", std::strerror(errno)),
              "install bubblewrap, or use --engine");
}

}  // namespace yoke::image
