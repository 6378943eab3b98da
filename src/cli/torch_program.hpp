#pragma once

#include <string>
#include <vector>

#include "yoke/core/environment.hpp"

namespace yoke::cli {

// A program of ours that loads torch, and the variables by which it finds torch.
struct TorchProgram {
  std::string path;
  core::EnvironmentMap extra;
};

// libexec/yoke/<name> beside this program's bin/, wherever that was moved to.
//
// In a build tree programs know where torch is. An installed copy has it from
// share/yoke/build.json, or from YOKE_TORCH_DIR, and gets its folders through LD_LIBRARY_PATH.
// Errors: unsupported where the program is missing (Yoke was built without torch) or torch is not
// where it was.
[[nodiscard]] TorchProgram find_torch_program(const std::string& name,
                                              const core::EnvironmentMap& variables);

// The same for a program that needs no torch. Errors: unsupported where it is missing.
[[nodiscard]] TorchProgram find_plain_program(const std::string& name);

// Becomes that program. Errors: io.
[[noreturn]] void become(const TorchProgram& program, const std::vector<std::string>& words);

}  // namespace yoke::cli
