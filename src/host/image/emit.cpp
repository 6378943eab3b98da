#include "yoke/image/emit.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/cdi.hpp"

namespace yoke::image {
namespace {

using core::Json;
using core::text;

/// What every form needs of a request: nodes, mounts and variables in one place.
struct Parts {
  std::vector<CdiEdits::Node> nodes{};
  std::vector<CdiEdits::Mount> mounts{};
  std::vector<std::pair<std::string, std::string>> variables{};
  std::string folder{};
};

Parts parts_of(const RunRequest& request, const InjectionPlan& plan) {
  const CdiSpec spec = cdi_of(plan);
  Parts parts{.folder = request.folder.empty() ? "/workspace" : request.folder};
  for (const auto& [name, edits] : spec.devices) {
    if (name == "all") parts.nodes = edits.nodes;
  }
  parts.nodes.insert(parts.nodes.end(), spec.edits.nodes.begin(), spec.edits.nodes.end());
  for (const Volume& volume : request.volumes) {
    parts.mounts.push_back({volume.host, volume.path, {volume.read_only ? "ro" : "rw", "rbind"}});
  }
  parts.mounts.insert(parts.mounts.end(), spec.edits.mounts.begin(), spec.edits.mounts.end());
  for (const InjectedVariable& variable : plan.variables)
    parts.variables.emplace_back(variable.name, variable.value);
  for (const auto& [name, value] : request.variables) parts.variables.emplace_back(name, value);
  return parts;
}

bool is_read_only(const CdiEdits::Mount& mount) {
  return std::find(mount.options.begin(), mount.options.end(), "ro") != mount.options.end();
}

std::string mount_text(const CdiEdits::Mount& mount) {
  return text(mount.host_path, ":", mount.path, is_read_only(mount) ? ":ro" : "");
}

std::string command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_quoted(word);
  return out + "\n";
}

std::string size_text(std::int64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + "m";
}

std::vector<std::string> engine_words(const std::string& engine, const RunRequest& request,
                                      const Parts& parts) {
  std::vector<std::string> words{engine, "run"};
  const auto add = [&](std::vector<std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (request.remove) add({"--rm"});
  if (request.interactive) add({"-i"});
  if (request.terminal) add({"-t"});
  if (request.detached) add({"-d"});
  if (!request.name.empty()) add({"--name", request.name});
  if (!request.user.empty()) add({"-u", request.user});
  if (!request.entrypoint.empty()) add({"--entrypoint", request.entrypoint});
  if (request.privileged) add({"--privileged"});
  add({"--shm-size", size_text(request.shared_memory()), "--ulimit", "memlock=-1", "--ulimit",
       text("stack=", kStackBytes)});
  // A rootless podman may not go above its user's own limit, and has it anyway.
  if (engine == "docker") add({"--ulimit", text("nofile=", request.open_files())});
  add({"--stop-timeout", std::to_string(request.grace_seconds), "-w", parts.folder});
  for (const std::string& port : request.ports) add({"-p", port});
  for (const CdiEdits::Node& node : parts.nodes) add({"--device", node.path});
  for (const CdiEdits::Mount& mount : parts.mounts) add({"-v", mount_text(mount)});
  for (const auto& [name, value] : parts.variables) add({"-e", text(name, "=", value)});
  if (engine == "podman") add({"--group-add", "keep-groups"});
  add({request.image});
  add(request.command);
  return words;
}

Json oci(const RunRequest& request, const Parts& parts) {
  Json out{{"ociVersion", "1.0.2"}};
  out["process"]["cwd"] = parts.folder;
  out["process"]["args"] = request.command;
  for (const auto& [name, value] : parts.variables)
    out["process"]["env"].push_back(text(name, "=", value));
  for (const CdiEdits::Mount& mount : parts.mounts) {
    out["mounts"].push_back({{"destination", mount.path},
                             {"source", mount.host_path},
                             {"type", "bind"},
                             {"options", mount.options}});
  }
  out["mounts"].push_back(
      {{"destination", "/dev/shm"},
       {"source", "shm"},
       {"type", "tmpfs"},
       {"options",
        {"nosuid", "noexec", "nodev", "mode=1777", text("size=", request.shared_memory())}}});
  for (const CdiEdits::Node& node : parts.nodes) {
    out["linux"]["devices"].push_back({{"path", node.path},
                                       {"type", node.type},
                                       {"major", *node.major},
                                       {"minor", *node.minor},
                                       {"fileMode", *node.mode}});
    out["linux"]["resources"]["devices"].push_back({{"allow", true},
                                                    {"type", node.type},
                                                    {"major", *node.major},
                                                    {"minor", *node.minor},
                                                    {"access", "rw"}});
  }
  return out;
}

/// A text that YAML reads back as the same text: JSON's form of it is one.
std::string yaml(const std::string& value) { return core::json_line(value); }

void yaml_list(std::string& out, const std::string& indent, const std::string& name,
               const std::vector<std::string>& items) {
  if (items.empty()) return;
  out += text(indent, name, ":\n");
  for (const std::string& item : items) out += text(indent, "  - ", yaml(item), "\n");
}

std::string compose(const RunRequest& request, const Parts& parts) {
  std::string out = text("services:\n  ", request.name.empty() ? "yoke" : request.name,
                         ":\n    image: ", yaml(request.image), "\n");
  const std::string indent = "    ";
  yaml_list(out, indent, "command", request.command);
  out += text(indent, "working_dir: ", yaml(parts.folder), "\n", indent,
              "shm_size: ", size_text(request.shared_memory()), "\n");
  out += text(indent, "stop_grace_period: ", request.grace_seconds, "s\n", indent, "ulimits:\n",
              indent, "  memlock: -1\n", indent, "  stack: ", kStackBytes, "\n", indent,
              "  nofile: ", request.open_files(), "\n");
  if (request.interactive) out += indent + "stdin_open: true\n";
  if (request.terminal) out += indent + "tty: true\n";
  if (!request.user.empty()) out += text(indent, "user: ", yaml(request.user), "\n");
  yaml_list(out, indent, "ports", request.ports);
  std::vector<std::string> items;
  for (const CdiEdits::Node& node : parts.nodes) items.push_back(node.path);
  yaml_list(out, indent, "devices", items);
  items.clear();
  for (const CdiEdits::Mount& mount : parts.mounts) items.push_back(mount_text(mount));
  yaml_list(out, indent, "volumes", items);
  items.clear();
  for (const auto& [name, value] : parts.variables) items.push_back(text(name, "=", value));
  yaml_list(out, indent, "environment", items);
  return out;
}

Json devcontainer(const RunRequest& request, const Parts& parts) {
  Json out{{"name", request.name.empty() ? "yoke" : request.name}, {"image", request.image}};
  out["hostRequirements"]["gpu"] = parts.nodes.empty() ? Json("optional") : Json(true);
  out["workspaceFolder"] = parts.folder;
  std::vector<std::string> words{"--shm-size", size_text(request.shared_memory()),
                                 "--ulimit",   "memlock=-1",
                                 "--ulimit",   text("stack=", kStackBytes)};
  for (const CdiEdits::Node& node : parts.nodes) words.insert(words.end(), {"--device", node.path});
  out["runArgs"] = words;
  for (const CdiEdits::Mount& mount : parts.mounts) {
    out["mounts"].push_back(text("source=", mount.host_path, ",target=", mount.path, ",type=bind",
                                 is_read_only(mount) ? ",readonly" : ""));
  }
  for (const auto& [name, value] : parts.variables) out["containerEnv"][name] = value;
  if (!request.user.empty()) out["remoteUser"] = request.user;
  return out;
}

std::string enroot(const RunRequest& request, const Parts& parts) {
  std::vector<std::string> words{"enroot", "start", "--rw"};
  for (const CdiEdits::Node& node : parts.nodes)
    words.insert(words.end(), {"--mount", text(node.path, ":", node.path, ":x-create=file,rbind")});
  for (const CdiEdits::Mount& mount : parts.mounts) {
    words.insert(words.end(),
                 {"--mount", text(mount.host_path, ":", mount.path, ":x-create=auto,rbind",
                                  is_read_only(mount) ? ",ro,nosuid,nodev" : "")});
  }
  for (const auto& [name, value] : parts.variables)
    words.insert(words.end(), {"--env", text(name, "=", value)});
  words.push_back(request.image);
  words.insert(words.end(), request.command.begin(), request.command.end());
  return command_line(words);
}

std::string apptainer(const RunRequest& request, const Parts& parts) {
  std::vector<std::string> words{"apptainer", "exec", "--containall", "--pwd", parts.folder};
  for (const CdiEdits::Node& node : parts.nodes) words.insert(words.end(), {"--bind", node.path});
  for (const CdiEdits::Mount& mount : parts.mounts)
    words.insert(words.end(), {"--bind", mount_text(mount)});
  for (const auto& [name, value] : parts.variables)
    words.insert(words.end(), {"--env", text(name, "=", value)});
  words.push_back(request.image);
  words.insert(words.end(), request.command.begin(), request.command.end());
  return command_line(words);
}

std::size_t gpu_count(const InjectionPlan& plan) { return plan.gpus.size(); }

/// A batch file for Slurm with pyxis: Slurm chooses the cards, and enroot's hook puts them in.
std::string slurm(const RunRequest& request, const InjectionPlan& plan, const Parts& parts) {
  std::string out = "#!/bin/bash\n";
  out += text("#SBATCH --job-name=", request.name.empty() ? "yoke" : request.name,
              "\n#SBATCH --nodes=1\n");
  if (gpu_count(plan) > 0) {
    out += text("#SBATCH --gpus-per-node=", gpu_count(plan),
                "\n#SBATCH --ntasks-per-node=", gpu_count(plan), "\n");
  }
  out += text("#SBATCH --signal=B:TERM@", request.grace_seconds,
              "\n#SBATCH --requeue\nset -euo pipefail\n\n"
              "# Slurm's own limits hold: as much of them as the site allows.\n"
              "ulimit -S -l \"$(ulimit -H -l)\" -n \"$(ulimit -H -n)\"\n");
  std::vector<std::string> mounts;
  for (const Volume& volume : request.volumes)
    mounts.push_back(text(volume.host, ":", volume.path, volume.read_only ? ":ro" : ""));
  for (const auto& [name, value] : request.variables)
    out += text("export ", name, "=", shell_quoted(value), "\n");
  if (gpu_count(plan) > 0) out += "export NVIDIA_DRIVER_CAPABILITIES=compute,utility\n";
  std::vector<std::string> words{"exec", "srun", "--container-image=" + request.image,
                                 "--container-workdir=" + parts.folder};
  if (!mounts.empty()) words.push_back("--container-mounts=" + core::joined(mounts, ","));
  words.insert(words.end(), request.command.begin(), request.command.end());
  return out + command_line(words);
}

/// A name as Kubernetes takes it.
std::string label(std::string name) {
  for (char& byte : name) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    byte = std::isalnum(static_cast<unsigned char>(lower)) != 0 ? lower : '-';
  }
  return name.empty() ? "yoke" : name;
}

/// A job whose shared memory is a volume of memory, since the default is 64 MiB. The device plugin
/// puts the cards in; paths of this host mean nothing on a node.
std::string kubernetes(const RunRequest& request, const InjectionPlan& plan, const Parts& parts) {
  const std::string name = label(request.name);
  std::string out = text(
      "# Limits on locked memory, stack and files are the node's: Kubernetes has no field for "
      "them.\n"
      "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: ",
      name, "\nspec:\n  backoffLimit: 0\n",
      "  template:\n    spec:\n      restartPolicy: Never\n      terminationGracePeriodSeconds: ",
      request.grace_seconds, "\n      containers:\n        - name: ", name,
      "\n          image: ", yaml(request.image), "\n          workingDir: ", yaml(parts.folder),
      "\n");
  const std::string indent = "          ";
  yaml_list(out, indent, "args", request.command);
  if (!request.variables.empty()) out += indent + "env:\n";
  for (const auto& [key, value] : request.variables)
    out += text(indent, "  - name: ", key, "\n", indent, "    value: ", yaml(value), "\n");
  if (gpu_count(plan) > 0)
    out += text(indent, "resources:\n", indent, "  limits:\n", indent,
                "    nvidia.com/gpu: ", gpu_count(plan), "\n");
  out += indent + "volumeMounts:\n" + indent + "  - name: shm\n" + indent +
         "    mountPath: /dev/shm\n";
  std::string volumes = text(
      "      volumes:\n        - name: shm\n          emptyDir:\n            medium: Memory\n      "
      "      sizeLimit: ",
      (request.shared_memory() + (1 << 20) - 1) >> 20, "Mi\n");
  for (std::size_t i = 0; i < request.volumes.size(); ++i) {
    const Volume& volume = request.volumes[i];
    out += text(indent, "  - name: v", i, "\n", indent, "    mountPath: ", yaml(volume.path), "\n");
    if (volume.read_only) out += indent + "    readOnly: true\n";
    volumes += text("        - name: v", i,
                    "\n          hostPath:\n            path: ", yaml(volume.host), "\n");
  }
  return out + volumes;
}

}  // namespace

const std::vector<std::string>& emit_targets() {
  static const std::vector<std::string> kTargets{"cdi",          "oci",       "docker", "compose",
                                                 "devcontainer", "podman",    "enroot", "apptainer",
                                                 "slurm",        "kubernetes"};
  return kTargets;
}

std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char byte) {
    return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
           std::string_view("_-./:=,@%+").find(byte) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char byte : word) out += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return out + "'";
}

std::string emit(std::string_view target, const RunRequest& request, const InjectionPlan& plan) {
  if (target == "cdi") return write_cdi(cdi_of(plan));
  const Parts parts = parts_of(request, plan);
  if (target == "oci") return core::json_text(oci(request, parts));
  if (target == "docker" || target == "podman")
    return command_line(engine_words(std::string(target), request, parts));
  if (target == "compose") return compose(request, parts);
  if (target == "devcontainer") return core::json_text(devcontainer(request, parts));
  if (target == "enroot") return enroot(request, parts);
  if (target == "apptainer") return apptainer(request, parts);
  if (target == "slurm") return slurm(request, plan, parts);
  if (target == "kubernetes") return kubernetes(request, plan, parts);
  throw Error(Code::invalid_argument, text("--emit '", target, "': no such form"),
              core::unknown_name_hint(target, emit_targets()));
}

std::string plan_text(const InjectionPlan& plan) {
  std::string out = text("request: ", plan.request,
                         "\ndriver: ", plan.driver.empty() ? "none" : plan.driver, "\n");
  for (const std::string& gpu : plan.gpus) out += text("gpu ", gpu, "\n");
  for (const InjectedNode& node : plan.nodes) {
    out += text("node ", node.path, " ", node.node.type, " ", node.node.major, ":", node.node.minor,
                node.is_there ? "" : " (not there yet)", "  # ", node.why, "\n");
  }
  for (const InjectedFile& file : plan.files) {
    out += text("file ", file.path, file.host == file.path ? "" : " <- " + file.host, "  # ",
                file.why, "\n");
  }
  for (const InjectedLink& link : plan.links)
    out += text("link ", link.path, " -> ", link.target, "  # ", link.why, "\n");
  for (const InjectedText& one : plan.texts) {
    out +=
        text("text ", one.path, " (", core::bytes_text(one.content.size()), ")  # ", one.why, "\n");
  }
  for (const InjectedVariable& variable : plan.variables) {
    out += text("variable ", variable.name, "=", variable.value, "  # ", variable.why, "\n");
  }
  for (const unsigned group : plan.groups)
    out += text("group ", group, "  # a node is closed to others\n");
  return out;
}

}  // namespace yoke::image
