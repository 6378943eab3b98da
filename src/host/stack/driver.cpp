#include "yoke/stack/driver.hpp"

#include <algorithm>
#include <array>

#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

using core::text;

const Toolkit* family_of(const Matrix& matrix, const Version& cuda) {
  const auto found =
      std::find_if(matrix.families.begin(), matrix.families.end(),
                   [&](const Toolkit& family) { return family.cuda.series(1) == cuda.series(1); });
  return found == matrix.families.end() ? nullptr : &*found;
}

/// The toolkit of that version, or the first of that minor version where it names no patch.
const Toolkit* find_toolkit(const Matrix& matrix, const Version& cuda) {
  const std::size_t parts = std::min<std::size_t>(cuda.release().size(), 3);
  const auto found = std::find_if(
      matrix.toolkits.begin(), matrix.toolkits.end(),
      [&](const Toolkit& toolkit) { return toolkit.cuda.series(parts) == cuda.series(parts); });
  return found == matrix.toolkits.end() ? nullptr : &*found;
}

/// The oldest driver that is known to be native: of this toolkit, or of the next one with a driver.
std::optional<Version> native_driver(const Matrix& matrix, const Toolkit& toolkit) {
  for (const Toolkit& candidate : matrix.toolkits) {
    if (candidate.cuda >= toolkit.cuda && candidate.driver) return candidate.driver;
  }
  return std::nullopt;
}

DriverJudgement too_old(const Version& driver, const Version& needed, const std::string& what,
                        const CardFacts& card) {
  DriverJudgement out{
      .verdict = DriverVerdict::no,
      .reason = text("driver ", driver.text(), " < needed ", needed.text(), " for ", what),
      .needed = needed};
  if (card.kind == CardClass::data_centre) {
    out.verdict = DriverVerdict::compat_package;
    out.reason += ": runs only with the package cuda-compat of that CUDA version";
  }
  return out;
}

}  // namespace

std::string_view name(DriverVerdict verdict) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"native", "minor-version", "compat-package",
                                                   "no", "not-checked"};
  return kNames[static_cast<std::size_t>(verdict)];
}

DriverJudgement judge_driver(const Matrix& matrix, const Version& driver, const Version& cuda,
                             const CardFacts& card) {
  const std::string what = "CUDA " + cuda.text();
  for (const ArchLimit& limit : matrix.limits) {
    if (card.arch && *card.arch >= limit.from && driver < limit.driver) {
      return {.verdict = DriverVerdict::no,
              .reason = text("driver ", driver.text(), " < needed ", limit.driver.text(), " for ",
                             card.arch->sm()),
              .needed = limit.driver};
    }
  }
  const Toolkit* family = family_of(matrix, cuda);
  const Toolkit* toolkit = find_toolkit(matrix, cuda);
  const auto native = toolkit == nullptr ? std::nullopt : native_driver(matrix, *toolkit);
  if (native && driver >= *native) {
    return {
        .verdict = DriverVerdict::native,
        .reason = text("driver ", driver.text(), " >= ", native->text(), ", released with ", what)};
  }
  if (family != nullptr && family->driver) {
    if (driver < *family->driver) return too_old(driver, *family->driver, what, card);
    return {.verdict = DriverVerdict::minor_version,
            .reason = text("driver ", driver.text(), " is ",
                           native ? "older than " + native->text() + " of " + what
                                  : "not known to be as new as " + what,
                           " but at least ", family->driver->text(), ", the floor of CUDA ",
                           family->cuda.text(), ".x")};
  }
  if (native) return too_old(driver, *native, what, card);
  return {.reason = text("driver for ", what, ": not checked")};
}

CodeVerdict judge_code(const Arch& card, const std::optional<std::vector<Arch>>& archs,
                       std::optional<bool> ptx) {
  if (!archs) return CodeVerdict::not_checked;
  const bool runs = std::any_of(archs->begin(), archs->end(), [&](const Arch& arch) {
    return arch.major == card.major && arch.minor <= card.minor;
  });
  if (runs) return CodeVerdict::machine_code;
  const auto highest = std::max_element(archs->begin(), archs->end());
  if (highest == archs->end() || *highest > card) return CodeVerdict::none;
  if (!ptx) return CodeVerdict::not_checked;
  return *ptx ? CodeVerdict::ptx : CodeVerdict::none;
}

std::string arch_list(const std::vector<Arch>& archs) {
  std::vector<std::string> words;
  for (const Arch& arch : archs) words.push_back(arch.sm());
  return core::joined(words, " ");
}

std::optional<Version> cuda_of_driver(const Matrix& matrix, const Version& driver) {
  std::optional<Version> newest;
  for (const Toolkit& toolkit : matrix.toolkits) {
    if (toolkit.driver && driver >= *toolkit.driver)
      newest = Version::parse(toolkit.cuda.series(2));
  }
  return newest;
}

}  // namespace yoke::stack
