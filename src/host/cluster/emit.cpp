#include "yoke/cluster/emit.hpp"

#include <algorithm>
#include <cstddef>

#include "yoke/cluster/hosts.hpp"
#include "yoke/cluster/nodes.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using core::text;

constexpr std::size_t kLongestName = 52;  // a Job's pods and JobSet add to it, and 63 is the limit

std::string last_part(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(slash == std::string::npos ? 0 : slash + 1);
}

/// Of the program, or of the script that a Python runs.
std::string program_name(const std::vector<std::string>& command) {
  const auto script = std::find_if(command.begin(), command.end(),
                                   [](const std::string& word) { return word.ends_with(".py"); });
  std::string name = last_part(script != command.end() ? *script
                               : command.empty()       ? std::string("job")
                                                       : command.front());
  return name.substr(0, name.rfind(".py"));
}

/// A DNS label.
std::string label(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) c = '-';
  }
  name = name.substr(
      name.find_first_not_of('-') == std::string::npos ? name.size() : name.find_first_not_of('-'));
  name = name.substr(0, kLongestName);
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "job" : name;
}

std::string one_line(const std::string& option, const std::string& value) {
  if (value.find_first_of("\n\r") == std::string::npos) return value;
  throw Error(Code::invalid_argument, text(option, ": the value has a line end in it"),
              "give one line");
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(shell_quoted(word));
  return core::joined(out, " ");
}

/// A YAML string; JSON's form is one.
std::string quoted(const std::string& words) { return core::json_line(core::Json(words)); }

std::vector<std::string> launch_call(const EmitOptions& options) {
  std::vector<std::string> words{"yoke", "launch"};
  words.insert(words.end(), options.launch_words.begin(), options.launch_words.end());
  words.insert(words.end(), {"--nproc-per-node", std::to_string(options.ranks)});
  const auto add = [&](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  add("--grace", std::to_string(options.grace.count()));
  add("--signal-grace", std::to_string(options.signal_grace.count()));
  if (options.max_restarts > 0) add("--max-restarts", std::to_string(options.max_restarts));
  if (!options.log_folder.empty()) add("--log-dir", options.log_folder);
  return words;
}

std::vector<std::string> with_command(std::vector<std::string> words, const EmitOptions& options) {
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

std::string node_range(const EmitOptions& options) {
  return options.fewest_nodes < options.nodes ? text(options.fewest_nodes, ":", options.nodes)
                                              : std::to_string(options.nodes);
}

std::chrono::seconds whole_grace(const EmitOptions& options) {
  constexpr std::chrono::seconds kSlack{10};
  return options.grace + options.signal_grace + kSlack;
}

/// Lines of a block, each moved in.
std::string moved_in(const std::string& block, int columns) {
  std::string out;
  for (const std::string& line : core::split(block, '\n')) {
    if (!line.empty()) out += std::string(static_cast<std::size_t>(columns), ' ') + line + "\n";
  }
  return out;
}

std::string environment_yaml(const EmitOptions& options, const std::string& name) {
  const auto variable = [](const std::string& key, const std::string& value) {
    return text("- name: ", key, "\n  value: ", quoted(value), "\n");
  };
  return variable("PET_NNODES", node_range(options)) +
         variable("PET_NPROC_PER_NODE", std::to_string(options.ranks)) +
         variable("YOKE_WORLD_SIZE", std::to_string(options.nodes * options.ranks)) +
         text("- name: YOKE_SECRET\n  valueFrom:\n    secretKeyRef:\n      name: ", name,
              "-secret\n      key: secret\n");
}

std::string container_yaml(const EmitOptions& options, const std::string& name,
                           const std::vector<std::string>& command, const std::string& title) {
  std::string out = text("- name: ", title, "\n  image: ", quoted(options.image), "\n  command:\n");
  for (const std::string& word : command) out += text("    - ", quoted(word), "\n");
  out += "  env:\n" + moved_in(environment_yaml(options, name), 4);
  out += text("  ports:\n    - name: coordinator\n      containerPort: ", kCoordinatorPort, "\n");
  if (options.gpus > 0)
    out += text("  resources:\n    limits:\n      nvidia.com/gpu: ", options.gpus, "\n");
  out +=
      "  securityContext:\n"
      "    allowPrivilegeEscalation: false\n"
      "    capabilities:\n"
      "      drop: [\"ALL\"]\n"
      "  volumeMounts:\n"
      "    - name: shared-memory\n"
      "      mountPath: /dev/shm\n";
  return out;
}

std::string pod_yaml(const EmitOptions& options, const std::string& name,
                     const std::vector<std::string>& command, const std::string& title,
                     bool in_service) {
  std::string out = text(
      "restartPolicy: Never\nterminationGracePeriodSeconds: ", whole_grace(options).count(), "\n");
  if (in_service) out += text("subdomain: ", name, "\n");
  out +=
      "securityContext:\n"
      "  runAsNonRoot: true\n"
      "  runAsUser: 1000\n"
      "  runAsGroup: 1000\n"
      "  fsGroup: 1000\n"
      "  seccompProfile:\n"
      "    type: RuntimeDefault\n"
      "containers:\n";
  out += moved_in(container_yaml(options, name, command, title), 2);
  out += text(
      "volumes:\n"
      "  - name: shared-memory\n"
      "    emptyDir:\n"
      "      medium: Memory\n"
      "      sizeLimit: ",
      quoted(options.shared_memory), "\n");
  return out;
}

/// What our exit codes mean to a Job.
std::string failure_policy_yaml() {
  return "podFailurePolicy:\n"
         "  rules:\n"
         "    - action: FailJob  # usage, this machine cannot do it, do not retry\n"
         "      onExitCodes:\n"
         "        containerName: yoke\n"
         "        operator: In\n"
         "        values: [2, 3, 4]\n"
         "    - action: Ignore  # the node was drained or the pod preempted\n"
         "      onPodConditions:\n"
         "        - type: DisruptionTarget\n"
         "          status: \"True\"\n";
}

std::string job_yaml(const EmitOptions& options, const std::string& name,
                     const std::string& service) {
  const std::vector<std::string> command = [&] {
    std::vector<std::string> words = launch_call(options);
    words.insert(words.end(), {"--node-rank", "$(JOB_COMPLETION_INDEX)", "--rdzv-endpoint",
                               text(service, ":", kCoordinatorPort)});
    return with_command(std::move(words), options);
  }();
  return text("completionMode: Indexed\ncompletions: ", options.nodes,
              "\nparallelism: ", options.nodes,
              "\nbackoffLimit: ", std::max(1, options.max_restarts) * options.nodes, "\n") +
         failure_policy_yaml() +
         text("template:\n  metadata:\n    labels:\n      yoke-job: ", name, "\n  spec:\n") +
         moved_in(pod_yaml(options, name, command, "yoke", true), 4);
}

std::string remark(const EmitOptions& options, const std::string& name) {
  return text("# ", options.nodes, options.nodes == 1 ? " pod" : " pods", " of ", options.ranks,
              options.ranks == 1 ? " rank" : " ranks", ": world size ",
              options.nodes * options.ranks,
              "\n# Make the secret by which the pods know each other once:\n"
              "#   head -c 32 /dev/urandom | base64 | kubectl create secret generic ",
              name, "-secret --from-file=secret=/dev/stdin\n");
}

std::string service_yaml(const std::string& name) {
  return text("apiVersion: v1\nkind: Service\nmetadata:\n  name: ", name,
              "\nspec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n"
              "  selector:\n    yoke-job: ",
              name, "\n  ports:\n    - name: coordinator\n      port: ", kCoordinatorPort, "\n");
}

std::string kubeflow_yaml(const EmitOptions& options, const std::string& name) {
  // The operator says node rank and meeting point in PET_NODE_RANK, PET_MASTER_ADDR, ...
  const std::vector<std::string> command = with_command(launch_call(options), options);
  const auto replicas = [&](const char* role, int count) {
    return text("    ", role, ":\n      replicas: ", count,
                "\n      restartPolicy: ExitCode\n      template:\n        spec:\n") +
           moved_in(pod_yaml(options, name, command, "pytorch", false), 10);
  };
  std::string out = text("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: ", name,
                         "\nspec:\n  nprocPerNode: ", quoted(std::to_string(options.ranks)),
                         "\n  runPolicy:\n    backoffLimit: ", std::max(1, options.max_restarts),
                         "\n  pytorchReplicaSpecs:\n");
  out += replicas("Master", 1);
  if (options.nodes > 1) out += replicas("Worker", options.nodes - 1);
  return out;
}

}  // namespace

std::string slurm_script(const EmitOptions& options) {
  std::string out = "#!/bin/bash\n";
  const auto directive = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) out += text("#SBATCH --", name, "=", one_line("--" + name, value), "\n");
  };
  const std::string name = options.name.empty() ? program_name(options.command) : options.name;
  directive("job-name", name);
  directive("nodes", options.fewest_nodes < options.nodes
                         ? text(options.fewest_nodes, "-", options.nodes)
                         : std::to_string(options.nodes));
  directive("ntasks-per-node", "1");
  if (options.gpus > 0) directive("gpus-per-node", std::to_string(options.gpus));
  directive("partition", options.partition);
  directive("account", options.account);
  directive("qos", options.qos);
  directive("time", options.time);
  directive("constraint", options.constraint);
  directive("output", options.log_folder.empty() ? "%x-%j.log" : options.log_folder + "/%x-%j.log");
  directive("signal", text("USR1@", whole_grace(options).count()));
  out += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  for (const std::string& word : core::split(one_line("--slurm", options.slurm), ' ')) {
    if (!word.empty()) out += text("#SBATCH ", word, "\n");
  }
  std::string call = quoted_words(launch_call(options));
  if (!options.image.empty()) {
    // pyxis; on sites without it, start the program in a container yourself.
    call = text("--container-image=", shell_quoted(one_line("--image", options.image)), " ", call);
  }
  const std::string rest = options.command.empty() ? "" : " -- " + quoted_words(options.command);
  out += text(
      "set -u\n"
      "\n"
      "# By this the machines of the job know each other; never an argument, which others could "
      "read.\n"
      "secret=$PWD/.yoke-secret-$SLURM_JOB_ID\n"
      "trap 'rm -f \"$secret\"' EXIT\n"
      "(umask 077; head -c 32 /dev/urandom | base64 >\"$secret\")\n"
      "\n"
      "srun --kill-on-bad-exit=0 ",
      call, " --job-id \"$SLURM_JOB_ID\" --secret-file \"$secret\"", rest,
      "\n"
      "code=$?\n"
      "# 128+n: stopped by signal n after saving (time limit, preemption). All else is final: 0 "
      "done,\n"
      "# 1 failed, 2 usage, 3 this machine cannot do it, 4 do not retry.\n"
      "if ((code > 128)); then scontrol requeue \"$SLURM_JOB_ID\"; fi\n"
      "exit \"$code\"\n");
  return out;
}

std::string kubernetes_manifest(const EmitOptions& options) {
  if (options.image.empty()) {
    throw Error(Code::invalid_argument, "--emit kubernetes: no image to run",
                "give --image REGISTRY/NAME:TAG, with yoke and the program in it");
  }
  const std::string wanted = options.name.empty() ? program_name(options.command) : options.name;
  const std::string name = label(wanted);
  if (!options.name.empty() && name != options.name) {
    throw Error(Code::invalid_argument,
                text("--name '", options.name, "' is no name for Kubernetes"),
                text("for example --name ", name));
  }
  if (options.kind == "kubeflow") return remark(options, name) + kubeflow_yaml(options, name);
  if (options.kind == "jobset") {
    const std::string host = text(name, "-workers-0-0.", name);
    return remark(options, name) +
           text("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: ", name,
                "\nspec:\n  network:\n    enableDNSHostnames: true\n    subdomain: ", name,
                "\n  failurePolicy:\n    maxRestarts: ", options.max_restarts,
                "\n  replicatedJobs:\n    - name: workers\n      replicas: 1\n      template:\n"
                "        spec:\n") +
           moved_in(job_yaml(options, name, host), 10);
  }
  return remark(options, name) + service_yaml(name) +
         text("---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: ", name, "\nspec:\n") +
         moved_in(job_yaml(options, name, text(name, "-0.", name)), 2);
}

std::string torchrun_commands(const EmitOptions& options) {
  const bool python =
      !options.command.empty() && options.command.front().find("python") != std::string::npos;
  std::vector<std::string> program = options.command;
  if (python) {
    program.erase(program.begin());
    std::erase(program, "-u");
  }
  const auto call = [&](const std::string& nodes) {
    return text("torchrun ", nodes, " --nproc-per-node ", options.ranks,
                options.max_restarts > 0 ? text(" --max-restarts ", options.max_restarts) : "",
                options.log_folder.empty()
                    ? ""
                    : text(" --log-dir ", shell_quoted(options.log_folder), " --tee 3"),
                python ? "" : " --no-python", " ", quoted_words(program), "\n");
  };
  if (options.nodes == 1) return call("--standalone");
  return text("# on each machine; FIRST_HOST is the name of one of them\n") +
         call(text("--nnodes ", node_range(options),
                   " --rdzv-backend c10d --rdzv-endpoint FIRST_HOST:", kCoordinatorPort,
                   " --rdzv-id ",
                   shell_quoted(options.name.empty() ? label(program_name(options.command))
                                                     : options.name)));
}

}  // namespace yoke::cluster
