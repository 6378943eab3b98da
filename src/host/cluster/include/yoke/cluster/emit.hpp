#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"

namespace yoke::cluster {

/// What a job file is to say.
struct EmitOptions {
  std::vector<std::string> command{};       ///< the ranks' program
  std::vector<std::string> launch_words{};  ///< further options of yoke launch
  std::string name{};                       ///< of the job; made of the program's name if empty
  int nodes{1};
  int fewest_nodes{1};
  int ranks{1};  ///< of each machine
  int gpus{0};   ///< of each machine; 0: none asked for
  int max_restarts{0};
  std::chrono::seconds grace{8};          ///< from SIGTERM to SIGKILL
  std::chrono::seconds signal_grace{30};  ///< to save after a signal
  std::string log_folder{};
  std::string image{};               ///< container image
  std::string shared_memory{"8Gi"};  ///< of a pod, at /dev/shm
  std::string kind{"job"};           ///< Kubernetes: job, jobset, kubeflow
  std::string partition{};           ///< from here on: Slurm
  std::string account{};
  std::string qos{};
  std::string time{};
  std::string constraint{};
  std::string slurm{};  ///< further sbatch options, between blanks
};

/// A batch script. Its job is queued again (`scontrol requeue`) when it was stopped by a signal
/// after saving (128+n), and ends with any other code as it is. Errors: invalid_argument, quoting a
/// value that would not stand in one line.
[[nodiscard]] std::string slurm_script(const EmitOptions& options);

/// A manifest: an indexed Job and its headless Service, a JobSet, or Kubeflow's PyTorchJob. Codes
/// 2, 3 and 4 fail it at once, a drained node does not count. Errors: invalid_argument: no image, a
/// name that Kubernetes does not take.
[[nodiscard]] std::string kubernetes_manifest(const EmitOptions& options);

/// The torchrun calls that start the same ranks.
[[nodiscard]] std::string torchrun_commands(const EmitOptions& options);

}  // namespace yoke::cluster
