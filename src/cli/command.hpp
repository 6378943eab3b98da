#pragma once

#include <string>
#include <vector>

namespace yoke::cli {

// A command of the front program. To add one, put a line into the table in main.cpp.
struct Command {
  const char* name;
  const char* summary;  // one line for `yoke --help`
  int (*run)(const std::vector<std::string>&
                 words);  // words after the command's name; returns the exit code
};

// Start ranks of a program; docs/cmd/launch.md.
int launch_command(const std::vector<std::string>& words);

// Check, build and run images; docs/cmd/image.md.
int image_command(const std::vector<std::string>& words);

// Train a model on every device; docs/cmd/train.md.
int train_command(const std::vector<std::string>& words);

// Evaluate trained weights; docs/cmd/eval.md.
int eval_command(const std::vector<std::string>& words);

// Look at checkpoints and weights, convert and average them; docs/cmd/checkpoint.md.
int checkpoint_command(const std::vector<std::string>& words);

// Whether this machine can train; docs/cmd/doctor.md.
int doctor_command(const std::vector<std::string>& words);

// Time training steps; docs/cmd/bench.md.
int bench_command(const std::vector<std::string>& words);

// Which versions fit each other; docs/cmd/stack.md.
int stack_command(const std::vector<std::string>& words);

// Look at data, pack and measure them; docs/cmd/data.md.
int data_command(const std::vector<std::string>& words);

}  // namespace yoke::cli
