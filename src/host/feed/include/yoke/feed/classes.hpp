#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yoke::feed {

/// The classes of a training set, numbered by the byte order of their names ("1", "10", "2"), as
/// torchvision numbers folders. Other splits take their numbers from here: numbered by itself, a
/// split that lacks a class would shift all labels after it.
///
///   const Classes classes(folders_of("train"));
///   const Classes::Match match = classes.match(folders_of("val"));
///
/// Threads: a value.
/// Errors: invalid_argument for a name that stands twice.
class Classes {
 public:
  struct Match {
    std::vector<std::int64_t> labels;  ///< of the split's names, in the order given
    std::vector<std::string> missing;  ///< training classes without a name here: worth a warning
  };

  explicit Classes(std::vector<std::string> names);

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

  /// Errors: invalid_argument for a name that training does not have, with that name.
  [[nodiscard]] Match match(const std::vector<std::string>& names_of_split) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace yoke::feed
