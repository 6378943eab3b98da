#pragma once

#include <string>
#include <vector>

namespace yoke::cli {

// Name the faults of Dockerfiles and requirements files; docs/cmd/image.md.
int image_lint_command(const std::vector<std::string>& words);

// Start a program in an image; docs/cmd/image.md.
int image_run_command(const std::vector<std::string>& words);

// Look into the layers of an image; docs/cmd/image.md.
int image_verify_command(const std::vector<std::string>& words);

}  // namespace yoke::cli
