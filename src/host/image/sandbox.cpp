#include "yoke/image/sandbox.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// docker's own list, without the making of nodes and raw sockets.
constexpr std::array kCapabilities{
    "CAP_CHOWN",  "CAP_DAC_OVERRIDE",     "CAP_FSETID",     "CAP_FOWNER",
    "CAP_SETGID", "CAP_SETUID",           "CAP_SETFCAP",    "CAP_SETPCAP",
    "CAP_KILL",   "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE"};

class Builder {
 public:
  Builder(const RunRequest& request, const ImageSettings& settings, const InjectionPlan& plan,
          const SandboxHost& host)
      : request_(request), settings_(settings), plan_(plan), host_(host) {}

  Sandbox build() {
    check_ports();
    out_.command = {"bwrap", "--bind", host_.root, "/", "--dev", "/dev", "--proc", "/proc"};
    add({"--tmpfs", "/run", "--tmpfs", "/tmp"});
    add({"--size", std::to_string(request_.shared_memory()), "--tmpfs", "/dev/shm"});
    names();
    injected();
    volumes();
    isolation();
    variables();
    program();
    return std::move(out_);
  }

 private:
  void add(std::vector<std::string> words) {
    out_.command.insert(out_.command.end(), words.begin(), words.end());
  }

  /// The sandbox shares the host's network, so a port is what it is.
  void check_ports() const {
    for (const std::string& port : request_.ports) {
      const std::vector<std::string> parts = core::split(port, ':');
      const std::string inside = parts.back().substr(0, parts.back().find('/'));
      if (parts.size() < 2 || parts[parts.size() - 2] == inside) continue;
      throw Error(
          Code::unsupported,
          text("-p ", port, ": the sandbox shares the host's network and maps no ports"),
          text("let the program listen on ", parts[parts.size() - 2], ", or use --engine docker"));
    }
  }

  void names() {
    for (const char* file : {"/etc/resolv.conf", "/etc/hosts"}) add({"--ro-bind-try", file, file});
    if (!request_.name.empty()) add({"--unshare-uts", "--hostname", request_.name});
  }

  void injected() {
    for (const InjectedNode& node : plan_.nodes) {
      if (node.is_there) add({"--dev-bind", node.path, node.path});
    }
    for (const InjectedFile& file : plan_.files) {
      if (file.kind == InjectedKind::firmware) continue;  // the kernel of the host loads it
      add({"--ro-bind", file.host, file.path});
    }
    for (const InjectedLink& link : plan_.links) add({"--symlink", link.target, link.path});
    out_.texts = plan_.texts;
  }

  void volumes() {
    const auto is_workspace = [](const Volume& volume) { return volume.path == "/workspace"; };
    if (std::none_of(request_.volumes.begin(), request_.volumes.end(), is_workspace)) {
      add({"--bind", host_.here, "/workspace"});
    }
    for (const Volume& volume : request_.volumes) {
      add({volume.read_only ? "--ro-bind" : "--bind", volume.host, volume.path});
    }
  }

  void isolation() {
    add({"--unshare-pid", "--die-with-parent"});
    if (!request_.terminal) add({"--new-session"});
    const std::string user = request_.user.empty() ? settings_.user : request_.user;
    if (!user.empty() && user != "root" && user != "0" && user != "0:0") {
      const std::vector<std::string> ids = core::split(user, ':');
      if (!core::parse_integer(ids.front()) || !core::parse_integer(ids.back())) {
        throw Error(Code::unsupported, text("-u ", user, ": the sandbox takes numbers"),
                    "write -u $(id -u):$(id -g)");
      }
      add({"--unshare-user", "--uid", ids.front(), "--gid", ids.back()});
    } else if (!host_.has_root) {
      add({"--unshare-user", "--uid", "0", "--gid", "0"});
    } else if (!request_.privileged) {
      add({"--cap-drop", "ALL"});
      for (const char* capability : kCapabilities) add({"--cap-add", capability});
    }
  }

  void variables() {
    core::EnvironmentMap& all = out_.variables;
    all = {{"PATH", kPath}, {"HOME", "/root"}};
    for (const auto& [name, value] : settings_.variables) all.insert_or_assign(name, value);
    if (request_.terminal)
      all.insert_or_assign("TERM", core::value_or(host_.caller, "TERM", "xterm"));
    for (const char* name : {"NB_UID", "NB_GID", "JUPYTER_TOKEN"}) {
      const auto found = host_.caller.find(name);
      if (found != host_.caller.end()) all.insert_or_assign(name, found->second);
    }
    for (const InjectedVariable& variable : plan_.variables)
      all.insert_or_assign(variable.name, variable.value);
    for (const auto& [name, value] : request_.variables) {
      if (name != "NVIDIA_VISIBLE_DEVICES") all.insert_or_assign(name, value);
    }
    if (std::any_of(plan_.files.begin(), plan_.files.end(),
                    [](const InjectedFile& file) { return file.kind == InjectedKind::program; })) {
      all["PATH"] += text(":", kDriverPrograms);
    }
    add({"--clearenv"});
    for (const auto& [name, value] : all) add({"--setenv", name, value});
  }

  void program() {
    out_.program = settings_.entrypoint;
    if (!request_.entrypoint.empty()) out_.program = {request_.entrypoint};
    const bool own = !request_.command.empty();
    const std::vector<std::string>& rest = own ? request_.command : settings_.command;
    if (own || request_.entrypoint.empty())
      out_.program.insert(out_.program.end(), rest.begin(), rest.end());
    if (out_.program.empty()) out_.program = {"/bin/sh"};
    const std::string folder = !request_.folder.empty()    ? request_.folder
                               : !settings_.folder.empty() ? settings_.folder
                                                           : "/workspace";
    add({"--chdir", folder});
  }

  const RunRequest& request_;
  const ImageSettings& settings_;
  const InjectionPlan& plan_;
  const SandboxHost& host_;
  Sandbox out_;
};

/// The interpreter that a script's first line names; empty: it is no script.
std::string interpreter_of(const Tree& image, const fs::path& file) {
  const std::string head = image.read(file).value_or("").substr(0, 256);
  if (!head.starts_with("#!")) return {};
  const std::string line(core::trimmed(std::string_view(head).substr(2, head.find('\n') - 2)));
  return line.substr(0, line.find_first_of(" \t"));
}

Startable check_file(const Tree& image, const fs::path& path) {
  const auto file = image.resolve(path);
  if (!file) return {127, text(path.string(), " is not in the image")};
  std::error_code error;
  const fs::file_status status = fs::status(image.outside(*file), error);
  const bool runs = (status.permissions() & (fs::perms::owner_exec | fs::perms::group_exec |
                                             fs::perms::others_exec)) != fs::perms::none;
  if (!fs::is_regular_file(status) || !runs) return {126, text(path.string(), " cannot be run")};
  const std::string interpreter = interpreter_of(image, *file);
  if (!interpreter.empty() && !image.exists(interpreter)) {
    return {127, text(path.string(), " needs ", interpreter, ", which is not in the image")};
  }
  return {};
}

}  // namespace

Sandbox make_sandbox(const RunRequest& request, const ImageSettings& settings,
                     const InjectionPlan& plan, const SandboxHost& host) {
  return Builder(request, settings, plan, host).build();
}

Startable check_program(const Tree& image, const std::string& program,
                        const core::EnvironmentMap& variables, const std::string& folder) {
  if (program.find('/') != std::string::npos) {
    const fs::path path = program.starts_with('/') ? fs::path(program) : fs::path(folder) / program;
    // A volume or the caller's folder may hold it, which the image does not show.
    const bool mounted = path.string().starts_with("/workspace") ||
                         path.string().starts_with("/run/") || !image.exists(path.parent_path());
    return mounted ? Startable{} : check_file(image, path);
  }
  Startable worst{127, text("no program '", program, "' on the image's PATH")};
  for (const std::string& part : core::split(core::value_or(variables, "PATH"), ':')) {
    if (part.starts_with("/run/yoke/")) {
      if (program.starts_with("nvidia-")) return {};
      continue;
    }
    const Startable one = check_file(image, fs::path(part) / program);
    if (one.exit_code == 0) return one;
    if (one.exit_code == 126 || one.reason.find("needs") != std::string::npos) worst = one;
  }
  return worst;
}

}  // namespace yoke::image
