#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/process.hpp"

namespace yoke::whole {

/// The build folder: where it was configured, or YOKE_TEST_BINARY_DIR where it was copied to
/// another machine.
[[nodiscard]] std::string binary_dir();

/// Programs of this build as their user runs them, on a machine without GPUs, in a folder that is
/// removed at the end.
///
/// Every process that a scene starts carries a mark in its environment, by which those that are
/// left are found.
class Scene : public ::testing::Test {
 protected:
  Scene();
  ~Scene() override;

  /// Runs `bin/yoke` with these words.
  core::ChildResult yoke(const std::vector<std::string>& words,
                         const core::EnvironmentMap& set = {});

  /// Runs a program of this build.
  core::ChildResult run(const std::string& program, const std::vector<std::string>& words,
                        const core::EnvironmentMap& set = {});

  /// Starts `bin/yoke` with these words and does not wait.
  [[nodiscard]] std::unique_ptr<core::Child> start(const std::vector<std::string>& words) const;

  /// The processes of this scene that live and whose environment holds that, as "RANK=1".
  [[nodiscard]] std::vector<pid_t> living_with(const std::string& variable) const;

  /// Processes of this scene that still live; waits up to 10 s for them to go.
  [[nodiscard]] std::vector<pid_t> left_behind() const;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  /// Names of the files in a folder of the scene, sorted; none where it is not there.
  [[nodiscard]] static std::vector<std::string> files_in(const std::filesystem::path& folder);

 private:
  [[nodiscard]] core::ChildOptions child(const std::string& program,
                                         const std::vector<std::string>& words,
                                         const core::EnvironmentMap& set) const;

  std::filesystem::path folder_;
  std::string mark_;
};

/// How many lines of `text` hold `part`.
[[nodiscard]] std::size_t lines_with(const std::string& part, const std::string& text);

/// The last line of `text`.
[[nodiscard]] std::string last_line(const std::string& text);

struct SetShape {
  std::int64_t train = 48;
  std::int64_t test = 20;
  std::int64_t classes = 4;
  std::int64_t size = 8;  ///< pixels a side
};

/// A folder of IDX files with images that can be told apart: class c is bright in its own rows.
void write_images(const std::filesystem::path& folder, const SetShape& shape = {});

/// One IDX file of unsigned bytes.
void write_idx(const std::filesystem::path& file, const std::vector<std::int64_t>& dims,
               const std::string& bytes);

}  // namespace yoke::whole
