#include "yoke/stack/resolve.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

using core::text;

Finding found(Demand demand, Fit fit, std::string reason) {
  return {.demand = demand, .fit = fit, .reason = std::move(reason)};
}

/// Holds one candidate against the wishes, demand by demand.
class Judge {
 public:
  Judge(const Matrix& matrix, const Wishes& wishes) : matrix_(matrix), wishes_(wishes) {}

  Candidate judge(const Release& release, const Patch* patch, const Build& build) {
    out_ = {.release = &release, .patch = patch, .build = &build};
    needs_native_ = false;
    judge_torch();
    judge_cuda();
    judge_python();
    judge_glibc();
    judge_abi();
    if (!build.is_cpu()) {
      for (const CardFacts& card : wishes_.cards) judge_card(card);
      judge_drivers();
    } else if (!wishes_.cards.empty() || wishes_.driver) {
      if (wishes_.cuda != kNone) against(Demand::gpu, Fit::no, "built without CUDA");
    }
    return std::move(out_);
  }

 private:
  void against(Demand demand, Fit fit, std::string reason) {
    out_.against.push_back(found(demand, fit, std::move(reason)));
  }

  void judge_torch() {
    const bool known = out_.patch != nullptr;
    const Version version = known ? *Version::parse(out_.title()) : out_.release->torch;
    if (wishes_.torch && !wishes_.torch->allow(version)) {
      against(Demand::torch, Fit::no, text("is not ", wishes_.torch->text()));
    }
    if (!known) against(Demand::torch, Fit::not_checked, "its versions: not checked");
  }

  void judge_cuda() {
    if (!wishes_.cuda) return;
    const std::string& wanted = *wishes_.cuda;
    const Build& build = *out_.build;
    if (wanted == kNone || build.is_cpu()) {
      if ((wanted == kNone) != build.is_cpu())
        against(Demand::cuda, Fit::no, wanted == kNone ? "has CUDA" : "built without CUDA");
      return;
    }
    const auto cuda = Version::parse(build.cuda.value_or(build.cuda_series()));
    if (!cuda || !cuda->begins_with(*Version::parse(wanted)))
      against(Demand::cuda, Fit::no, "is not CUDA " + wanted);
  }

  void judge_python() {
    if (!wishes_.python) return;
    const auto& range = out_.release->python;
    if (!range) return against(Demand::python, Fit::not_checked, "Python versions: not checked");
    const std::string& wanted = *wishes_.python;
    if (std::find(range->trial.begin(), range->trial.end(), wanted) != range->trial.end()) {
      out_.notes.push_back("Python " + wanted + " is experimental");
      return;
    }
    const auto version = Version::parse(wanted);
    if (!version || *version < range->first || Version::parse(version->series(2)) > range->last) {
      against(Demand::python, Fit::no,
              text("no wheel for Python ", wanted, " (", range->first.text(), " to ",
                   range->last.text(), ")"));
    }
  }

  void judge_glibc() {
    if (!wishes_.glibc) return;
    const Fact& needed = out_.build->glibc;
    if (!needed) return against(Demand::glibc, Fit::not_checked, "glibc: not checked");
    if (*wishes_.glibc < *Version::parse(*needed))
      against(Demand::glibc, Fit::no, text("needs glibc ", *needed));
  }

  void judge_abi() {
    if (!wishes_.abi) return;
    if (!out_.build->abi) return against(Demand::abi, Fit::not_checked, "string ABI: not checked");
    if (*out_.build->abi != *wishes_.abi)
      against(Demand::abi, Fit::no, text("has the ", name(*out_.build->abi), " string ABI"));
  }

  void judge_card(const CardFacts& card) {
    const Build& build = *out_.build;
    if (!card.arch) return;
    switch (judge_code(*card.arch, build.archs, build.ptx)) {
      case CodeVerdict::machine_code: break;
      case CodeVerdict::ptx:
        out_.notes.push_back(card.arch->sm() + ": by PTX that the driver translates at first use");
        needs_native_ = true;
        break;
      case CodeVerdict::none:
        against(Demand::gpu, Fit::no,
                text("no code for ", card.arch->sm(), " (has ", arch_list(*build.archs), ")"));
        break;
      case CodeVerdict::not_checked:
        against(Demand::gpu, Fit::not_checked, text("code for ", card.arch->sm(), ": not checked"));
        break;
    }
    judge_cudnn(*card.arch);
  }

  void judge_cudnn(const Arch& arch) {
    const auto cudnn = Version::parse(out_.build->cudnn.value_or(""));
    if (cudnn && *cudnn >= matrix_.old_cudnn_end && arch < matrix_.cudnn_arch) {
      against(Demand::gpu, Fit::no,
              text("its cuDNN ", cudnn->text(), " has no code for ", arch.sm()));
    }
  }

  void judge_drivers() {
    if (!wishes_.driver) return;
    const auto cuda = Version::parse(out_.build->cuda.value_or(out_.build->cuda_series()));
    std::vector<CardFacts> cards = wishes_.cards;
    if (cards.empty()) cards.emplace_back();
    out_.driver = DriverVerdict::native;
    for (const CardFacts& card : cards) judge_driver_for(card, cuda);
  }

  void judge_driver_for(const CardFacts& card, const std::optional<Version>& cuda) {
    const DriverJudgement judgement =
        cuda ? judge_driver(matrix_, *wishes_.driver, *cuda, card) : DriverJudgement{};
    out_.driver = std::max(out_.driver, judgement.verdict);
    if (judgement.verdict == DriverVerdict::not_checked) {
      against(Demand::driver, Fit::not_checked, judgement.reason);
    } else if (!judgement.runs()) {
      against(Demand::driver, Fit::no, judgement.reason);
    } else if (needs_native_ && judgement.verdict == DriverVerdict::minor_version) {
      against(Demand::driver, Fit::no,
              "PTX needs a driver as new as its CUDA: " + judgement.reason);
    } else {
      out_.notes.push_back(judgement.reason);
    }
  }

  const Matrix& matrix_;
  const Wishes& wishes_;
  Candidate out_;
  bool needs_native_ = false;
};

int tier_rank(const Fact& tier) {
  if (tier == "stable") return 0;
  if (tier == "experimental") return 1;
  return tier == "extra" ? 2 : 3;
}

/// Less is better.
auto rank(const Candidate& set) {
  const Build& build = *set.build;
  const Version& torch = set.patch == nullptr ? set.release->torch : set.patch->torch;
  const auto cuda = Version::parse(build.cuda_series()).value_or(Version{});
  return std::make_tuple(
      -torch.release().at(0), -(torch.release().size() > 1 ? torch.release()[1] : 0),
      -(torch.release().size() > 2 ? torch.release()[2] : 0), static_cast<int>(set.driver),
      tier_rank(build.tier), build.is_default.value_or(false) ? 0 : 1,
      cuda.release().empty() ? 0 : -cuda.release()[0],
      cuda.release().size() < 2 ? 0 : -cuda.release()[1]);
}

bool better(const Candidate& a, const Candidate& b) { return rank(a) < rank(b); }

std::vector<Candidate> judge_all(const Matrix& matrix, const Wishes& wishes) {
  Judge judge(matrix, wishes);
  std::vector<Candidate> all;
  for (const Release& release : matrix.releases) {
    for (const Build& build : release.builds) {
      if (!release.patches) all.push_back(judge.judge(release, nullptr, build));
      if (!release.patches) continue;
      for (const Patch& patch : *release.patches) {
        all.push_back(judge.judge(release, &patch, build));
      }
    }
  }
  std::sort(all.begin(), all.end(), better);
  return all;
}

bool fails(const Candidate& set, Demand demand) {
  return std::any_of(set.against.begin(), set.against.end(), [&](const Finding& finding) {
    return finding.demand == demand && finding.fit == Fit::no;
  });
}

/// The oldest driver that serves all cards; nothing where no driver is known to.
std::optional<Version> needed_driver(const Matrix& matrix, const Wishes& wishes,
                                     const Candidate& set) {
  std::optional<Version> needed;
  std::vector<CardFacts> cards = wishes.cards;
  if (cards.empty()) cards.emplace_back();
  const auto cuda = Version::parse(set.build->cuda.value_or(set.build->cuda_series()));
  for (const CardFacts& card : cards) {
    const auto judgement = judge_driver(matrix, *wishes.driver, *cuda, card);
    if (judgement.needed && (!needed || *judgement.needed > *needed)) needed = judgement.needed;
  }
  return needed;
}

std::string driver_change(const Matrix& matrix, const Wishes& wishes, const Candidate& set) {
  const auto needed = needed_driver(matrix, wishes, set);
  const std::string driver = needed ? "a driver from " + needed->text() : "a newer driver";
  return set.driver == DriverVerdict::compat_package ? "with the package cuda-compat, or " + driver
                                                     : "with " + driver;
}

std::string change_for(const Matrix& matrix, const Wishes& wishes, Demand demand,
                       const Candidate& set) {
  switch (demand) {
    case Demand::torch: return "with torch " + set.title();
    case Demand::cuda: return "with CUDA " + shown(set.build->cuda);
    case Demand::gpu: return "with another card: " + set.against.front().reason;
    case Demand::glibc: return "with glibc from " + shown(set.build->glibc);
    case Demand::abi: return "with the other string ABI";
    case Demand::driver: return driver_change(matrix, wishes, set);
    case Demand::python:
      return text("with Python ", set.release->python->first.text(), " to ",
                  set.release->python->last.text());
  }
  return "";
}

/// The set that fails by `demand` alone: the first of `all`, and for a driver the one that asks for
/// the oldest.
const Candidate* nearest(const Matrix& matrix, const Wishes& wishes,
                         const std::vector<Candidate>& all, Demand demand) {
  const Candidate* best = nullptr;
  for (const Candidate& set : all) {
    if (!set.fails_only(demand)) continue;
    if (demand != Demand::driver) return &set;
    if (best == nullptr ||
        needed_driver(matrix, wishes, set) < needed_driver(matrix, wishes, *best))
      best = &set;
  }
  return best;
}

}  // namespace

std::string_view name(Demand demand) noexcept {
  constexpr std::array<std::string_view, 7> kNames{"torch",  "cuda",  "python", "gpu",
                                                   "driver", "glibc", "abi"};
  return kNames[static_cast<std::size_t>(demand)];
}

std::optional<std::string> parse_cuda_wish(std::string_view word) {
  if (word == kNone || word == "cpu") return std::string(kNone);
  if (word.starts_with("cu") && word.size() > 3) {
    const Build build{.wheel = std::string(word)};
    const auto version = Version::parse(build.cuda_series());
    return version ? std::optional(version->text()) : std::nullopt;
  }
  const auto version = Version::parse(word);
  return version ? std::optional(version->series(version->release().size())) : std::nullopt;
}

std::string Candidate::title() const {
  const Version& torch = patch == nullptr ? release->torch : patch->torch;
  return torch.text() + "+" + build->wheel;
}

Fit Candidate::fit() const noexcept {
  Fit worst = Fit::yes;
  for (const Finding& finding : against) {
    if (finding.fit == Fit::no) return Fit::no;
    worst = finding.fit;
  }
  return worst;
}

bool Candidate::fails_only(Demand demand) const noexcept {
  return !against.empty() && std::all_of(against.begin(), against.end(), [&](const Finding& item) {
    return item.demand == demand && item.fit == Fit::no;
  });
}

Resolution resolve(const Matrix& matrix, const Wishes& wishes) {
  Resolution out;
  const std::vector<Candidate> all = judge_all(matrix, wishes);
  for (const Candidate& set : all) {
    if (set.fit() == Fit::yes) out.fits.push_back(set);
    if (set.fit() == Fit::not_checked) out.maybe.push_back(set);
    const bool asked_for = !fails(set, Demand::torch) && !fails(set, Demand::cuda);
    if (set.fit() == Fit::no && asked_for) out.excluded.push_back(set);
  }
  if (!out.fits.empty()) return out;
  for (const Demand demand : {Demand::torch, Demand::cuda, Demand::driver, Demand::python,
                              Demand::glibc, Demand::abi, Demand::gpu}) {
    const Candidate* set = nearest(matrix, wishes, all, demand);
    if (set == nullptr) continue;
    out.neighbours.push_back(
        {.demand = demand, .set = *set, .change = change_for(matrix, wishes, demand, *set)});
  }
  return out;
}

std::string install_line(const Candidate& set) {
  const std::string local = "+" + set.build->wheel;
  std::string out = "pip install torch==" + set.title();
  if (set.patch != nullptr) {
    for (const auto& [package, fact] : {std::pair{"torchvision", set.patch->torchvision},
                                        std::pair{"torchaudio", set.patch->torchaudio}}) {
      if (fact && *fact != kNone) out += text(" ", package, "==", *fact, local);
    }
  }
  return out + " --index-url https://download.pytorch.org/whl/" + set.build->wheel;
}

}  // namespace yoke::stack
