#include "yoke/stack/pairs.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

using core::text;

Judgement ok(std::string reason) { return {.reason = std::move(reason)}; }

Judgement error(std::string reason, std::string fix) {
  return {.severity = Severity::error, .reason = std::move(reason), .fix = std::move(fix)};
}

Judgement warning(std::string reason, std::string fix) {
  return {.severity = Severity::warning, .reason = std::move(reason), .fix = std::move(fix)};
}

Judgement cannot_judge(std::string reason, std::string fix = {}) {
  return {.severity = Severity::warning,
          .judged = false,
          .reason = "cannot judge: " + std::move(reason),
          .fix = std::move(fix)};
}

/// "12" of cu126; "cpu"; empty for another word.
std::string cuda_major(const std::string& local) {
  if (local == "cpu") return local;
  if (!local.starts_with("cu") || local.size() < 4) return "";
  return local.substr(2, local.size() - 3);
}

const Fact& series_of(const Release& release, std::string_view package) {
  return package == "torchaudio" ? release.torchaudio : release.torchvision;
}

const Fact& version_of(const Patch& patch, std::string_view package) {
  return package == "torchaudio" ? patch.torchaudio : patch.torchvision;
}

/// The version that belongs to this torch, as exactly as the matrix knows it.
std::string fitting(const Matrix& matrix, const Version& torch, std::string_view package) {
  const Patch* patch = matrix.patch(torch);
  const Release* release = matrix.release(torch);
  Fact fact;
  if (patch != nullptr) fact = version_of(*patch, package);
  if (!fact && release != nullptr) fact = series_of(*release, package);
  if (!fact || *fact == kNone) return text(package, ": ", shown(fact));
  const bool built = release != nullptr && find_build(*release, torch.local()) != nullptr;
  return text(package, "==", *fact, built ? "+" + torch.local() : "");
}

Judgement judge_builds(const Version& torch, std::string_view package, const Version& version,
                       const std::string& fix) {
  const std::string& a = torch.local();
  const std::string& b = version.local();
  if (a.empty() || b.empty() || a == b)
    return ok(text(package, " ", version.text(), " belongs to torch ", torch.text()));
  const std::string what =
      text("torch ", torch.text(), " and ", package, " ", version.text(), " are builds for ");
  const std::string left = cuda_major(a);
  const std::string right = cuda_major(b);
  if (left.empty() || right.empty()) return cannot_judge(what + text(a, " and ", b), fix);
  if (left == right)
    return warning(what + text("CUDA ", left, ".x of two minor versions (", a, ", ", b, ")"), fix);
  if (left == "cpu" || right == "cpu") return error(what + "one without CUDA and one with it", fix);
  return error(what + text("CUDA ", left, " and CUDA ", right), fix);
}

/// torchaudio ended with 2.11; that one is used beside later torch and works.
bool is_last_torchaudio(const Matrix& matrix, const Release& release, std::string_view package,
                        const Version& version) {
  if (package != "torchaudio" || release.torchaudio != kNone) return false;
  const auto last = std::find_if(
      matrix.releases.rbegin(), matrix.releases.rend(),
      [](const Release& item) { return item.torchaudio && *item.torchaudio != kNone; });
  return last != matrix.releases.rend() && version.series(2) == *last->torchaudio;
}

const Release* owner(const Matrix& matrix, std::string_view package, const Version& version) {
  const auto found = std::find_if(
      matrix.releases.begin(), matrix.releases.end(),
      [&](const Release& release) { return series_of(release, package) == version.series(2); });
  return found == matrix.releases.end() ? nullptr : &*found;
}

}  // namespace

std::string_view name(Severity severity) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"ok", "note", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

Judgement judge_pair(const Matrix& matrix, const Version& torch, std::string_view package,
                     const Version& version) {
  const Release* release = matrix.release(torch);
  const std::string fix = fitting(matrix, torch, package);
  if (release == nullptr || !series_of(*release, package)) {
    return cannot_judge(
        text("which ", package, " belongs to torch ", torch.text(), ": not checked"));
  }
  if (is_last_torchaudio(matrix, *release, package, version)) {
    return {
        .severity = Severity::note,
        .reason = text("torchaudio ", version.text(), " is the last one; it is used beside torch ",
                       torch.series(2), " and works, as far as is known")};
  }
  const Release* belongs = owner(matrix, package, version);
  if (belongs == nullptr)
    return cannot_judge(text(package, " ", version.text(), " is not in the matrix"), fix);
  if (belongs != release) {
    return error(text(package, " ", version.series(2), " belongs to torch ",
                      belongs->torch.series(2), ", not to ", torch.text()),
                 fix);
  }
  const Patch* patch = matrix.patch(torch);
  if (patch != nullptr && version_of(*patch, package) &&
      Version::parse(*version_of(*patch, package)) != version.without_local()) {
    return warning(text(package, " ", version.text(), " belongs to another patch of torch ",
                        torch.series(2), " than ", torch.text()),
                   fix);
  }
  return judge_builds(torch, package, version, fix);
}

Judgement judge_numpy(const Matrix& matrix, const Version& torch, const Version& numpy) {
  const Version two = *Version::parse("2");
  if (torch.without_local() >= matrix.numpy_two || numpy < two)
    return ok(text("NumPy ", numpy.text(), " fits torch ", torch.text()));
  return error(text("torch ", torch.text(), " was built against NumPy 1, here is ", numpy.text()),
               text("pip install 'numpy<2', or torch >= ", matrix.numpy_two.text()));
}

Judgement judge_python(const Matrix& matrix, const Version& torch, std::string_view python) {
  const Release* release = matrix.release(torch);
  if (release == nullptr || !release->python)
    return cannot_judge(text("Python versions of torch ", torch.text(), ": not checked"));
  const PythonRange& range = *release->python;
  if (std::find(range.trial.begin(), range.trial.end(), python) != range.trial.end())
    return {.severity = Severity::note, .reason = text("Python ", python, " is experimental")};
  const auto version = Version::parse(python);
  const std::string allowed = text(range.first.text(), " to ", range.last.text());
  if (version && *version >= range.first && *Version::parse(version->series(2)) <= range.last)
    return ok(text("Python ", python, " is one of ", allowed));
  return error(
      text("no wheel of torch ", torch.text(), " for Python ", python),
      text("Python ", allowed, ", or another torch: yoke stack resolve --python ", python));
}

Judgement judge_library(std::string_view what, const Version& built, const Version& loaded) {
  const std::string both =
      text(what, " ", loaded.text(), " is loaded, torch was built with ", built.text());
  if (built.release().at(0) != loaded.release().at(0))
    return error(both + ": another major version", text(what, " ", built.text()));
  if (loaded.without_local() < built.without_local())
    return error(both + ": older", text(what, " ", built.text(), " or a newer one of its major"));
  return ok(both);
}

Judgement judge_cuda_runtime(const CudaNumbers& cuda) {
  if (!cuda.torch || !cuda.driver) return cannot_judge("torch's CUDA or the driver's is not known");
  const std::string both =
      text("torch has CUDA ", cuda.torch->text(), ", the driver serves ", cuda.driver->text());
  if (*cuda.driver >= *cuda.torch) return ok(both);
  return warning(both, "a newer driver, or torch for an older CUDA; yoke stack resolve says which");
}

Judgement judge_cuda_compiler(const CudaNumbers& cuda) {
  if (!cuda.nvcc || !cuda.torch) return ok("no nvcc that could compile extensions");
  const std::string both =
      text("nvcc is CUDA ", cuda.nvcc->text(), ", torch has ", cuda.torch->text());
  if (cuda.nvcc->series(1) == cuda.torch->series(1)) return ok(both);
  return warning(both + ": matters only for compiling extensions",
                 text("a toolkit of CUDA ", cuda.torch->series(1), ".x, found through CUDA_HOME"));
}

}  // namespace yoke::stack
