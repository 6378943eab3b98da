#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/stack/driver.hpp"
#include "yoke/stack/matrix.hpp"

namespace yoke::stack {

/// What a set has to fit. What is absent asks for nothing.
struct Wishes {
  std::optional<Specifiers> torch{};
  std::vector<CardFacts> cards{};  ///< each with its architecture
  std::optional<Version> driver{};
  std::optional<std::string> python{};  ///< "3.12", "3.13t"
  std::optional<std::string> cuda{};    ///< "12", "12.8", "none" for the build without CUDA
  std::optional<Version> glibc{};
  std::optional<StringAbi> abi{};
};

/// Reads --cuda: 12, 12.8, 12.8.1, cu128, none, cpu. Nothing for another text.
[[nodiscard]] std::optional<std::string> parse_cuda_wish(std::string_view text);

enum class Demand { torch, cuda, python, gpu, driver, glibc, abi };
[[nodiscard]] std::string_view name(Demand demand) noexcept;

enum class Fit { yes, no, not_checked };

struct Finding {
  Demand demand = Demand::torch;
  Fit fit = Fit::yes;
  std::string reason{};
};

/// A patch of torch in one of its builds, held against the wishes.
struct Candidate {
  const Release* release = nullptr;
  const Patch* patch = nullptr;  ///< null where the matrix knows no patch of the release
  const Build* build = nullptr;
  DriverVerdict driver = DriverVerdict::not_checked;  ///< the weakest over the cards
  std::vector<Finding> against{};                     ///< what excludes it, or is not checked
  std::vector<std::string> notes{};

  [[nodiscard]] std::string title() const;  ///< "2.9.1+cu128"
  [[nodiscard]] Fit fit() const noexcept;
  [[nodiscard]] bool fails_only(Demand demand) const noexcept;
};

/// A set that would fit if one demand were given up or changed.
struct Neighbour {
  Demand demand = Demand::torch;
  Candidate set{};
  std::string change{};  ///< "with a driver from 580.65.06"
};

struct Resolution {
  std::vector<Candidate> fits{};        ///< the best first
  std::vector<Candidate> maybe{};       ///< nothing excludes them, something was not checked
  std::vector<Candidate> excluded{};    ///< of the torch and CUDA that were asked for
  std::vector<Neighbour> neighbours{};  ///< where nothing fits: the nearest, by demand
};

/// Finds the sets of `matrix` that fit. Borrows the matrix for the result's life.
///
/// Order: newest torch, native driver before minor version, stable before experimental before
/// extra,
///   the default build, newest CUDA.
[[nodiscard]] Resolution resolve(const Matrix& matrix, const Wishes& wishes);

/// `pip install ...` for a set.
[[nodiscard]] std::string install_line(const Candidate& set);

}  // namespace yoke::stack
