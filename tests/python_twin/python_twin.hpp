#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

namespace yoke::twin {

/// Why Python torch cannot be asked here; empty where it can.
[[nodiscard]] std::string missing();

/// The test's Python script, run with the interpreter of .yoke/full, and the tensors passed to and
/// fro.
///
///   Twin twin;
///   twin.give("x", x);
///   twin.run("forward");                    // script.py FOLDER forward
///   EXPECT_TRUE(twin["y"].allclose(y));
///
/// The script reads and writes them with tensors.py beside this file. In the folder, `index` holds
/// one line `name dtype size,size,...` per tensor, and the n-th tensor's bytes are in the file n.
/// Errors: std::runtime_error with the script's words where it fails.
class Twin {
 public:
  Twin();
  ~Twin();
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  void give(const std::string& name, const at::Tensor& tensor);
  void give_text(const std::string& file, const std::string& text);

  /// Runs the script, at most five minutes, and reads all that it left.
  void run(const std::string& task);

  [[nodiscard]] const at::Tensor& operator[](const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return tensors_.count(name) != 0; }

  /// A file of the shared folder.
  [[nodiscard]] std::filesystem::path path(const std::string& file) const { return folder_ / file; }

  /// The lines of a text file that the script left.
  [[nodiscard]] std::vector<std::string> lines(const std::string& file) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<std::string, at::Tensor>> given_;
  std::map<std::string, at::Tensor> tensors_;
};

/// |a - b| / |b|, or |a| where b is all zeros; the error of `a` as a whole.
[[nodiscard]] double relative_error(const at::Tensor& a, const at::Tensor& b);

}  // namespace yoke::twin
