#include "yoke/stack/explain.hpp"

#include <algorithm>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

using core::text;

const Requirement* find(const InstallPlan& plan, std::string_view name) {
  const auto found =
      std::find_if(plan.requirements.begin(), plan.requirements.end(),
                   [&](const Requirement& requirement) { return requirement.name == name; });
  return found == plan.requirements.end() ? nullptr : &*found;
}

bool is_cuda_word(std::string_view word) {
  return word == "cpu" || (word.starts_with("cu") && word.size() >= 4 &&
                           word.find_first_not_of("0123456789", 2) == std::string_view::npos);
}

/// The wheel kind that an index address serves: cu126 of .../whl/cu126; empty for another address.
std::string wheel_of_index(std::string_view address) {
  while (address.ends_with("/")) address.remove_suffix(1);
  const std::string last = core::split(address, '/').back();
  return is_cuda_word(last) ? last : "";
}

std::vector<std::string> wheels_of(const Release& release) {
  std::vector<std::string> out;
  for (const Build& build : release.builds) out.push_back(build.wheel);
  return out;
}

const Release* last_with(const Matrix& matrix, const std::string& wheel) {
  const auto found =
      std::find_if(matrix.releases.rbegin(), matrix.releases.rend(),
                   [&](const Release& release) { return find_build(release, wheel) != nullptr; });
  return found == matrix.releases.rend() ? nullptr : &*found;
}

std::string newest_patch(const Release& release) {
  if (!release.patches || release.patches->empty()) return release.torch.series(2);
  return release.patches->back().torch.text();
}

class Explainer {
 public:
  Explainer(const Matrix& matrix, const InstallPlan& plan) : matrix_(matrix), plan_(plan) {
    if (const Requirement* torch = find(plan, "torch")) torch_ = torch->versions.exact();
  }

  Explanation run() {
    explain_torch();
    for (const char* package : {"torchvision", "torchaudio"}) explain_partner(package);
    explain_numpy();
    explain_index();
    explain_place();
    align();
    return std::move(out_);
  }

 private:
  void say(std::string id, Severity severity, std::string reason, std::string fix = {}) {
    out_.issues.push_back({.id = std::move(id),
                           .severity = severity,
                           .reason = std::move(reason),
                           .fix = std::move(fix)});
  }

  void say(std::string id, const Judgement& judgement) {
    say(std::move(id), judgement.severity, judgement.reason, judgement.fix);
  }

  void explain_torch() {
    const Requirement* torch = find(plan_, "torch");
    if (torch == nullptr) return;
    if (!torch_) {
      return say("torch-pin", Severity::warning,
                 text("torch ", torch->versions.text(), " is not pinned to one version"),
                 "torch==VERSION; yoke stack resolve names one");
    }
    const Release* release = matrix_.release(*torch_);
    if (release == nullptr || !release->patches)
      return say("torch-version", Severity::warning,
                 text("cannot judge: torch ", torch_->text(), " is not in the matrix"));
    if (matrix_.patch(*torch_) == nullptr)
      say("torch-version", Severity::warning,
          text("torch ", torch_->text(), " is not among the patches that are known of ",
               release->torch.text()),
          "torch==" + newest_patch(*release));
    explain_build("torch-build", *release, torch_->local(), "torch " + torch_->text(),
                  "torch " + release->torch.series(2));
  }

  /// Whether a package of `release` was built as `wheel`.
  void explain_build(const std::string& id, const Release& release, const std::string& wheel,
                     const std::string& what, const std::string& family) {
    if (wheel.empty()) return;
    const std::string builds = core::joined(wheels_of(release));
    if (find_build(release, wheel) != nullptr)
      return say(id, Severity::ok, text(what, " exists (", builds, ")"));
    const Release* last = last_with(matrix_, wheel);
    const std::string where =
        last == nullptr ? text("no torch of the matrix has ", wheel)
                        : text("the last torch with ", wheel, " is ", newest_patch(*last));
    say(id, Severity::error, text(what, " was never built: ", family, " has ", builds, "; ", where),
        text("one of +", core::joined(wheels_of(release), ", +"),
             last == nullptr ? "" : ", or torch==" + newest_patch(*last) + "+" + wheel));
  }

  void explain_partner(const std::string& package) {
    const Requirement* partner = find(plan_, package);
    if (partner == nullptr) return;
    const auto version = partner->versions.exact();
    if (!version) {
      if (torch_)
        say(package + "-pin", Severity::warning,
            text(package, " is not pinned: pip may take one that belongs to another torch"),
            judge_pair(matrix_, *torch_, package, *Version::parse("0.0")).fix);
      return;
    }
    if (torch_) {
      const Judgement pair = judge_pair(matrix_, *torch_, package, *version);
      say(package + "-pair", pair);
    }
    if (package == "torchvision") explain_vision_build(*version);
  }

  void explain_vision_build(const Version& version) {
    const Release* release = matrix_.release_of_torchvision(version);
    if (release == nullptr) return;
    explain_build("torchvision-build", *release, version.local(), "torchvision " + version.text(),
                  "torchvision " + version.without_local().text());
  }

  void explain_numpy() {
    const Requirement* numpy = find(plan_, "numpy");
    if (!torch_ || torch_->without_local() >= matrix_.numpy_two) return;
    const Version two = *Version::parse("2.0.0");
    if (numpy != nullptr && !numpy->versions.allow(two)) return;
    say("numpy", Severity::warning,
        text("torch ", torch_->text(), " was built against NumPy 1, and pip would take NumPy 2"),
        "add numpy<2");
  }

  /// Local versions are on PyTorch's own index only, each CUDA on its own.
  void explain_index() {
    std::vector<std::string> locals;
    for (const Requirement& requirement : plan_.requirements) {
      const auto version = requirement.versions.exact();
      if (version && is_cuda_word(version->local())) locals.push_back(version->local());
    }
    if (locals.empty()) return;
    if (plan_.indexes.empty()) {
      return say("index", Severity::error,
                 text("no index given, and PyPI has no version with +", locals[0],
                      ": pip will say \"no matching distribution\""),
                 "--index-url https://download.pytorch.org/whl/" + locals[0]);
    }
    for (const std::string& index : plan_.indexes) {
      const std::string wheel = wheel_of_index(index);
      if (!wheel.empty() && std::find(locals.begin(), locals.end(), wheel) == locals.end())
        say("index", Severity::error,
            text("the index serves ", wheel, ", asked for is +", locals[0]),
            text("the index of ", locals[0]));
    }
  }

  void explain_place() {
    if (!torch_) return;
    if (plan_.python) say("python", judge_python(matrix_, *torch_, *plan_.python));
    const Release* release = matrix_.release(*torch_);
    const Build* build = release == nullptr ? nullptr : representative(*release);
    if (build == nullptr || !build->glibc) return;
    const Version needed = *Version::parse(*build->glibc);
    if (plan_.glibc) {
      const bool enough = *plan_.glibc >= needed;
      say("glibc", enough ? Severity::ok : Severity::error,
          text("glibc ", plan_.glibc->text(), enough ? " is enough: " : " is too old: ", "torch ",
               torch_->text(), " needs ", needed.text()),
          enough ? "" : "a newer distribution");
    }
    if (plan_.pip && *plan_.pip < matrix_.manylinux_pip && needed > *Version::parse("2.17"))
      say("pip", Severity::error,
          text("pip ", plan_.pip->text(), " cannot see wheels with the tag manylinux_2_28"),
          text("pip >= ", matrix_.manylinux_pip.text()));
  }

  /// The build that was asked for, or any: what does not depend on CUDA is the same in all.
  [[nodiscard]] const Build* representative(const Release& release) const {
    if (const Build* build = find_build(release, torch_->local())) return build;
    return release.builds.empty() ? nullptr : &release.builds.back();
  }

  void align() {
    if (out_.worst() < Severity::warning || !torch_) return;
    Wishes keep_torch{.torch = Specifiers::parse_loosely(torch_->series(2)),
                      .python = python_if_possible()};
    const auto cuda = Build{.wheel = torch_->local()}.cuda_series();
    if (!cuda.empty()) {
      Wishes keep_cuda{.cuda = cuda};
      add_aligned("CUDA " + cuda, keep_cuda);
      // Torch's oldest CUDA asks least of the driver.
      if (const Build* oldest = oldest_cuda()) keep_torch.cuda = oldest->cuda_series();
    }
    add_aligned("torch " + torch_->series(2), keep_torch);
  }

  [[nodiscard]] std::optional<std::string> python_if_possible() const {
    if (!plan_.python || judge_python(matrix_, *torch_, *plan_.python).severity == Severity::error)
      return std::nullopt;
    return plan_.python;
  }

  [[nodiscard]] const Build* oldest_cuda() const {
    const Release* release = matrix_.release(*torch_);
    if (release == nullptr) return nullptr;
    const auto found = std::find_if(release->builds.begin(), release->builds.end(),
                                    [](const Build& build) { return !build.is_cpu(); });
    return found == release->builds.end() ? nullptr : &*found;
  }

  void add_aligned(const std::string& keeps, const Wishes& wishes) {
    const Resolution resolution = resolve(matrix_, wishes);
    if (!resolution.fits.empty())
      out_.aligned.push_back({.keeps = keeps, .set = resolution.fits.front()});
  }

  const Matrix& matrix_;
  const InstallPlan& plan_;
  std::optional<Version> torch_{};
  Explanation out_{};
};

}  // namespace

Severity Explanation::worst() const noexcept {
  Severity worst = Severity::ok;
  for (const Issue& issue : issues) worst = std::max(worst, issue.severity);
  return worst;
}

InstallPlan read_install_words(const std::vector<std::string>& words) {
  InstallPlan plan;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool index = word == "--index-url" || word == "--extra-index-url" || word == "-i";
    if (index && i + 1 < words.size()) {
      plan.indexes.push_back(words[++i]);
    } else if (const std::size_t equals = word.find('=');
               word.starts_with("--") && word.find("index-url=") != word.npos) {
      plan.indexes.push_back(word.substr(equals + 1));
    } else if (word != "pip" && word != "pip3" && word != "install" && !word.starts_with("-")) {
      auto requirement = Requirement::parse(word);
      if (!requirement)
        throw Error(Code::invalid_argument, text("explain '", word, "': not a requirement"),
                    "write it as pip does, e.g. torch==2.9.1+cu126");
      plan.requirements.push_back(std::move(*requirement));
    }
  }
  return plan;
}

Explanation explain(const Matrix& matrix, const InstallPlan& plan) {
  return Explainer(matrix, plan).run();
}

}  // namespace yoke::stack
