#include "yoke/image/tree.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel
constexpr unsigned kPermissions = 0777;

void put_in_front(std::deque<std::string>& parts, const fs::path& path) {
  std::vector<std::string> front;
  for (const fs::path& part : path.relative_path()) front.push_back(part.string());
  parts.insert(parts.begin(), front.begin(), front.end());
}

/// "c 195:0 0666 0" of a tree made by a test.
std::optional<Node> described(const std::string& text) {
  const std::vector<std::string> words = core::split(std::string(core::trimmed(text)), ' ');
  if (words.size() < 3 || (words[0] != "c" && words[0] != "b")) return std::nullopt;
  const std::vector<std::string> numbers = core::split(words[1], ':');
  const auto major = core::parse_integer(numbers.front());
  const auto minor = core::parse_integer(numbers.back());
  if (!major || !minor || numbers.size() != 2) return std::nullopt;
  Node node{.type = words[0][0],
            .major = static_cast<unsigned>(*major),
            .minor = static_cast<unsigned>(*minor)};
  std::from_chars(words[2].data(), words[2].data() + words[2].size(), node.mode, 8);
  if (words.size() > 3) node.gid = static_cast<unsigned>(core::parse_integer(words[3]).value_or(0));
  return node;
}

}  // namespace

Tree::Tree(fs::path root) : root_(std::move(root)) {
  if (root_.empty()) root_ = "/";
}

std::optional<fs::path> Tree::resolve(const fs::path& path) const {
  std::deque<std::string> parts;
  put_in_front(parts, path);
  fs::path done = "/";
  int links = 0;
  while (!parts.empty()) {
    const std::string part = std::exchange(parts.front(), {});
    parts.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      done = done.parent_path();
      continue;
    }
    const fs::path next = done / part;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(outside(next), error);
    if (status.type() == fs::file_type::not_found || error) return std::nullopt;
    if (!fs::is_symlink(status)) {
      done = next;
      continue;
    }
    if (++links > kMostLinks) return std::nullopt;
    const fs::path target = fs::read_symlink(outside(next), error);
    if (error) return std::nullopt;
    if (target.is_absolute()) done = "/";
    put_in_front(parts, target);
  }
  return done;
}

fs::path Tree::outside(const fs::path& resolved) const { return root_ / resolved.relative_path(); }

std::optional<std::string> Tree::read(const fs::path& path) const try {
  const auto resolved = resolve(path);
  if (!resolved) return std::nullopt;
  std::error_code error;
  const bool is_file = fs::is_regular_file(outside(*resolved), error);
  return is_file ? std::optional(core::read_file(outside(*resolved))) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // a file that this user may not read is not there for him
}

std::vector<std::string> Tree::list(const fs::path& folder) const {
  std::vector<std::string> names;
  const auto resolved = resolve(folder);
  if (!resolved) return names;
  std::error_code error;
  for (fs::directory_iterator at(outside(*resolved), error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Node> Tree::node(const fs::path& path) const {
  const auto resolved = resolve(path);
  if (!resolved) return std::nullopt;
  struct stat facts{};
  if (::stat(outside(*resolved).c_str(), &facts) != 0) return std::nullopt;
  if (S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode)) {
    return Node{.type = S_ISCHR(facts.st_mode) ? 'c' : 'b',
                .major = major(facts.st_rdev),
                .minor = minor(facts.st_rdev),
                .mode = facts.st_mode & kPermissions,
                .uid = facts.st_uid,
                .gid = facts.st_gid};
  }
  if (root_ == "/" || !S_ISREG(facts.st_mode)) return std::nullopt;
  return described(read(*resolved).value_or(""));
}

bool Tree::is_folder(const fs::path& path) const {
  const auto resolved = resolve(path);
  std::error_code error;
  return resolved && fs::is_directory(outside(*resolved), error);
}

bool Tree::exists(const fs::path& path) const { return resolve(path).has_value(); }

std::optional<std::uintmax_t> Tree::file_size(const fs::path& path) const {
  const auto resolved = resolve(path);
  std::error_code error;
  if (!resolved || !fs::is_regular_file(outside(*resolved), error)) return std::nullopt;
  const std::uintmax_t size = fs::file_size(outside(*resolved), error);
  return error ? std::nullopt : std::optional(size);
}

std::optional<std::string> Tree::link_text(const fs::path& path) const {
  const auto folder = resolve(path.parent_path());
  if (!folder) return std::nullopt;
  std::error_code error;
  const fs::path target = fs::read_symlink(outside(*folder / path.filename()), error);
  return error ? std::nullopt : std::optional(target.string());
}

}  // namespace yoke::image
