#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "yoke/image/image_parts.hpp"
#include "yoke/stack/labels.hpp"
#include "yoke/stack/resolve.hpp"

namespace yoke::image {

/// What `yoke image build` is asked for.
struct BuildRequest {
  std::string release{};      ///< v2.9, 2.9.1, newest
  std::string cuda = "auto";  ///< auto, 12, 12.8, none
  std::string python{};       ///< empty: the base's
  std::string base{};  ///< an image's name, a root file system's tar, apt:SUITE; empty: by Python
  std::string base_system{};  ///< of a base that is a file: debian12; empty: its name tells
  std::string index_url{};    ///< empty: PyPI, and PyTorch's index where the wheel is not on PyPI
  std::vector<std::string> with{};
  std::vector<std::string> without{};
  std::string tag{};  ///< empty: localhost/yoke:v2.9
};

/// The machine for which `auto` chooses.
struct BuildHost {
  std::vector<stack::CardFacts> cards{};
  std::optional<stack::Version> driver{};  ///< nothing: no driver here
};

/// What will be in an image.
struct BuildPlan {
  std::string release{};  ///< "2.9"
  stack::Candidate set{};
  std::string why{};  ///< this CUDA and no other
  std::string base{};
  std::string system{};  ///< of the base: debian12; empty: not known
  std::string python{};
  std::set<std::string> features{};
  std::vector<std::string> packages{};  ///< of the distribution, sorted
  std::vector<std::string> wheels{};    ///< what pip is asked for: "torch==2.9.1"
  std::string index_url{};              ///< empty: what pip is set up with, else PyPI
  std::string extra_index_url{};        ///< empty: none
  stack::StackLabels labels{};
  std::string tag{};

  [[nodiscard]] bool has(const std::string& feature) const { return features.contains(feature); }
  [[nodiscard]] std::string torch() const { return set.title(); }  ///< "2.9.1+cu128"
};

/// Chooses the set, the base and the parts. Borrows the matrix for the plan's life.
/// Errors: invalid_argument for a request that cannot be read or contradicts itself; unsupported,
///   with what excludes what, where no set of the matrix fits.
[[nodiscard]] BuildPlan plan_build(const BuildRequest& request, const BuildHost& host,
                                   const stack::Matrix& matrix = stack::Matrix::built_in(),
                                   const ImageParts& parts = ImageParts::built_in());

}  // namespace yoke::image
