#pragma once

#include <string>
#include <vector>

namespace yoke::cli {

// Build an image, write its lock, or write what builds it; docs/cmd/image.md.
int image_build_command(const std::vector<std::string>& words);
int image_lock_command(const std::vector<std::string>& words);
int image_render_command(const std::vector<std::string>& words);

// Add packages to an image; docs/cmd/image.md.
int image_extend_command(const std::vector<std::string>& words);

// Name the faults of Dockerfiles and requirements files; docs/cmd/image.md.
int image_lint_command(const std::vector<std::string>& words);

// Start a program in an image; docs/cmd/image.md.
int image_run_command(const std::vector<std::string>& words);

// Look into the layers of an image; docs/cmd/image.md.
int image_verify_command(const std::vector<std::string>& words);

}  // namespace yoke::cli
