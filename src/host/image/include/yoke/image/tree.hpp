#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace yoke::image {

/// A device node as the kernel knows it.
struct Node {
  char type = 'c';
  unsigned major = 0;
  unsigned minor = 0;
  unsigned mode = 0;  ///< permission bits
  unsigned uid = 0;
  unsigned gid = 0;
};

/// A folder that stands for "/": this machine, an image's root, a tree made by a test.
///
///   const Tree image("/var/lib/images/v2.9");
///   image.resolve("/etc/passwd");  // never a path outside, whatever links the image holds
///
/// Paths given and returned begin at the tree's root. A link is followed inside the tree alone: an
/// absolute one begins at its root again, and ".." ends there.
/// In a tree that is not "/", a plain file that says "c MAJOR:MINOR MODE GID" stands for a node.
/// Threads: any. Errors: none; what cannot be read is not there.
class Tree {
 public:
  explicit Tree(std::filesystem::path root = "/");

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

  /// The path without links; nothing where nothing is there, or after 40 links.
  [[nodiscard]] std::optional<std::filesystem::path> resolve(
      const std::filesystem::path& path) const;

  /// Where a resolved path lies on this machine.
  [[nodiscard]] std::filesystem::path outside(const std::filesystem::path& resolved) const;

  [[nodiscard]] std::optional<std::string> read(const std::filesystem::path& path) const;

  /// The names in a folder, sorted.
  [[nodiscard]] std::vector<std::string> list(const std::filesystem::path& folder) const;

  [[nodiscard]] std::optional<Node> node(const std::filesystem::path& path) const;
  [[nodiscard]] bool is_folder(const std::filesystem::path& path) const;
  [[nodiscard]] bool exists(const std::filesystem::path& path) const;

  /// The size of a plain file; nothing where there is none.
  [[nodiscard]] std::optional<std::uintmax_t> file_size(const std::filesystem::path& path) const;

  /// What a link says, unresolved; nothing where it is no link.
  [[nodiscard]] std::optional<std::string> link_text(const std::filesystem::path& path) const;

 private:
  std::filesystem::path root_;
};

}  // namespace yoke::image
