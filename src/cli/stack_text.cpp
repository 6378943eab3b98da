#include "stack_text.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::Json;
using core::text;
using stack::shown;

constexpr std::size_t kMostReasons = 12;  // lines of excluded sets

std::string padded(std::string word, std::size_t width) {
  word.append(word.size() < width ? width - word.size() : 1, ' ');
  return word;
}

std::string archs_text(const stack::Build& build) {
  if (build.is_cpu()) return "-";
  if (!build.archs) return "not checked";
  return stack::arch_list(*build.archs) + (build.ptx.value_or(false) ? " + PTX" : "");
}

std::string abi_text(const std::optional<stack::StringAbi>& abi) {
  return abi ? std::string(name(*abi)) : "not checked";
}

std::string python_text(const std::optional<stack::PythonRange>& python) {
  if (!python) return "not checked";
  return python->first.text() + " to " + python->last.text();
}

/// "torchvision 0.24.1, torchaudio 2.9.1, triton 3.5.1"
std::string partners_text(const stack::Patch& patch) {
  std::vector<std::string> parts;
  for (const auto& [package, fact] :
       {std::pair{"torchvision", patch.torchvision}, std::pair{"torchaudio", patch.torchaudio},
        std::pair{"triton", patch.triton}}) {
    if (fact != stack::kNone) parts.push_back(text(package, " ", shown(fact)));
  }
  return core::joined(parts);
}

std::string set_text(const stack::Candidate& set) {
  const stack::Build& build = *set.build;
  const stack::Release& release = *set.release;
  std::string out = "torch " + set.title();
  if (set.patch != nullptr) out += ", " + partners_text(*set.patch);
  out += "\n";
  if (!build.is_cpu())
    out +=
        text("  CUDA ", shown(build.cuda), ", cuDNN ", shown(build.cudnn), ", NCCL ",
             shown(build.nccl), " (the wheel brings them)\n  code for ", archs_text(build), "\n");
  out += text("  Python ", python_text(release.python), ", glibc >= ", shown(build.glibc),
              ", string ABI ", abi_text(build.abi), ", C++",
              release.cxx ? std::to_string(*release.cxx) : " not checked", "; ", shown(build.tier),
              "\n");
  for (const std::string& note : set.notes) out += "  " + note + "\n";
  if (set.driver != stack::DriverVerdict::not_checked)
    out += text("  driver: ", name(set.driver), "\n");
  return out;
}

std::string reasons_text(const stack::Candidate& set) {
  std::vector<std::string> reasons;
  for (const stack::Finding& finding : set.against) reasons.push_back(finding.reason);
  return core::joined(reasons, "; ");
}

/// One line a build of a release: its patches differ in nothing that excludes.
std::string sets_text(const std::vector<stack::Candidate>& sets) {
  std::string out;
  std::vector<std::string> seen;
  for (const stack::Candidate& set : sets) {
    const std::string build = set.release->torch.series(2) + "+" + set.build->wheel;
    if (std::find(seen.begin(), seen.end(), build) != seen.end()) continue;
    if (seen.size() == kMostReasons) return out + "  ...\n";
    seen.push_back(build);
    out += "  " + padded(set.title(), 14) + reasons_text(set) + "\n";
  }
  return out;
}

std::string also_text(const std::vector<stack::Candidate>& fits) {
  std::vector<std::string> titles;
  for (std::size_t i = 1; i < fits.size() && titles.size() < 4; ++i)
    titles.push_back(fits[i].title());
  return titles.empty() ? "" : "also fits: " + core::joined(titles) + "\n";
}

Json fact_json(const stack::Fact& fact) { return fact ? Json(*fact) : Json(nullptr); }

Json build_json(const stack::Build& build) {
  Json out{{"wheel", build.wheel},
           {"cuda", fact_json(build.cuda)},
           {"tier", fact_json(build.tier)},
           {"default", build.is_default ? Json(*build.is_default) : Json(nullptr)},
           {"cudnn", fact_json(build.cudnn)},
           {"nccl", fact_json(build.nccl)},
           {"sm", nullptr},
           {"ptx", build.ptx ? Json(*build.ptx) : Json(nullptr)},
           {"abi", build.abi ? Json(name(*build.abi)) : Json(nullptr)},
           {"glibc", fact_json(build.glibc)},
           {"sources", build.sources}};
  if (build.archs) {
    out["sm"] = Json::array();
    for (const stack::Arch& arch : *build.archs) out["sm"].push_back(arch.dotted());
  }
  return out;
}

Json patch_json(const stack::Patch& patch) {
  return {{"torchvision", fact_json(patch.torchvision)},
          {"torchaudio", fact_json(patch.torchaudio)},
          {"triton", fact_json(patch.triton)}};
}

Json set_json(const stack::Candidate& set) {
  Json out{{"torch", set.title()}};
  if (set.patch != nullptr) out.update(patch_json(*set.patch));
  out.update(build_json(*set.build));
  const auto& python = set.release->python;
  out["python"] = python ? Json{python->first.text(), python->last.text()} : Json(nullptr);
  out["cxx"] = set.release->cxx ? Json(*set.release->cxx) : Json(nullptr);
  out["driver"] = name(set.driver);
  out["notes"] = set.notes;
  out["install"] = stack::install_line(set);
  out["against"] = Json::array();
  for (const stack::Finding& finding : set.against) {
    out["against"].push_back({{"demand", name(finding.demand)},
                              {"checked", finding.fit != stack::Fit::not_checked},
                              {"reason", finding.reason}});
  }
  return out;
}

Json sets_json(const std::vector<stack::Candidate>& sets) {
  Json out = Json::array();
  for (const stack::Candidate& set : sets) out.push_back(set_json(set));
  return out;
}

}  // namespace

std::string resolution_text(const stack::Resolution& resolution, const stack::Wishes& wishes) {
  if (!resolution.fits.empty()) {
    const stack::Candidate& best = resolution.fits.front();
    std::string out = set_text(best) + "install: " + stack::install_line(best) + "\n" +
                      also_text(resolution.fits);
    if (!resolution.excluded.empty()) out += "excluded:\n" + sets_text(resolution.excluded);
    return out;
  }
  std::string out = "no set fits";
  if (wishes.torch) out += " torch " + wishes.torch->text();
  out += "\n";
  if (!resolution.excluded.empty()) out += "excluded:\n" + sets_text(resolution.excluded);
  if (!resolution.maybe.empty())
    out += "may fit, not everything was checked:\n" + sets_text(resolution.maybe);
  if (!resolution.neighbours.empty()) out += "nearest:\n";
  for (const stack::Neighbour& neighbour : resolution.neighbours) {
    out += "  " + padded(neighbour.set.title(), 14) + neighbour.change + "\n";
  }
  return out;
}

Json resolution_json(const stack::Matrix& matrix, const stack::Resolution& resolution) {
  Json out{{"schema", "yoke.resolve/1"},
           {"matrix", matrix.version},
           {"fits", sets_json(resolution.fits)},
           {"not_checked", sets_json(resolution.maybe)},
           {"excluded", sets_json(resolution.excluded)},
           {"nearest", Json::array()}};
  for (const stack::Neighbour& neighbour : resolution.neighbours) {
    out["nearest"].push_back({{"demand", name(neighbour.demand)},
                              {"change", neighbour.change},
                              {"set", set_json(neighbour.set)}});
  }
  return out;
}

std::string matrix_text(const stack::Matrix& matrix) {
  std::string out = "state of " + matrix.version + "; * is what pip installs; ? not checked\n";
  out += padded("torch", 7) + padded("Python", 14) + padded("torchvision", 13) + "wheels\n";
  for (const stack::Release& release : matrix.releases) {
    std::vector<std::string> wheels;
    for (const stack::Build& build : release.builds)
      wheels.push_back(build.wheel + (build.is_default.value_or(false) ? "*" : "") +
                       (build.is_default ? "" : "?"));
    const std::string python =
        release.python ? release.python->first.text() + "-" + release.python->last.text() : "?";
    out += padded(release.torch.text(), 7) + padded(python, 14) +
           padded(release.torchvision.value_or("?"), 13) + core::joined(wheels, " ") + "\n";
  }
  return out + "yoke stack show TORCH says more of one\n";
}

Json matrix_json(const stack::Matrix& matrix) {
  Json out{{"schema", "yoke.stack/1"}, {"matrix", matrix.version}, {"releases", Json::array()}};
  for (const stack::Release& release : matrix.releases)
    out["releases"].push_back(release_json(release));
  return out;
}

std::string release_text(const stack::Release& release) {
  std::string out = text("torch ", release.torch.text(), " (", release.month, ")\n  Python ",
                         python_text(release.python), "; C++",
                         release.cxx ? std::to_string(*release.cxx) : " not checked", "\n");
  if (!release.note.empty()) out += "  " + release.note + "\n";
  if (!release.patches) out += "  its versions: not checked\n";
  for (const stack::Patch& patch : release.patches.value_or(std::vector<stack::Patch>{}))
    out += "  " + padded(patch.torch.text(), 8) + partners_text(patch) + "\n";
  for (const stack::Build& build : release.builds) {
    out += text("  +", build.wheel, build.is_default.value_or(false) ? " (what pip installs)" : "",
                ": CUDA ", shown(build.cuda), ", cuDNN ", shown(build.cudnn), ", NCCL ",
                shown(build.nccl), ", glibc >= ", shown(build.glibc), ", string ABI ",
                abi_text(build.abi), "\n    code for ", archs_text(build), "; ", shown(build.tier),
                "; from ", core::joined(build.sources), "\n");
    for (const std::string& read : build.read) out += "    read: " + read + "\n";
    if (!build.note.empty()) out += "    " + build.note + "\n";
  }
  return out;
}

Json release_json(const stack::Release& release) {
  Json out{{"torch", release.torch.text()}, {"month", release.month}, {"patches", nullptr}};
  out["python"] = nullptr;
  if (release.python)
    out["python"] = {{"first", release.python->first.text()},
                     {"last", release.python->last.text()},
                     {"trial", release.python->trial}};
  if (release.patches) {
    out["patches"] = Json::object();
    for (const stack::Patch& patch : *release.patches)
      out["patches"][patch.torch.text()] = patch_json(patch);
  }
  out["builds"] = Json::array();
  for (const stack::Build& build : release.builds) out["builds"].push_back(build_json(build));
  return out;
}

std::string explanation_text(const stack::Explanation& explanation) {
  std::string out;
  for (const stack::Issue& issue : explanation.issues) {
    out += padded(std::string(name(issue.severity)), 9) + issue.id + ": " + issue.reason + "\n";
    if (!issue.fix.empty()) out += "         fix: " + issue.fix + "\n";
  }
  for (const stack::Aligned& aligned : explanation.aligned)
    out += "to keep " + aligned.keeps + ": " + stack::install_line(aligned.set) + "\n";
  return out.empty() ? "nothing to say: no torch among the requirements\n" : out;
}

Json explanation_json(const stack::Explanation& explanation) {
  Json out{{"schema", "yoke.explain/1"}, {"issues", Json::array()}, {"sets", Json::array()}};
  for (const stack::Issue& issue : explanation.issues) {
    out["issues"].push_back({{"id", issue.id},
                             {"severity", name(issue.severity)},
                             {"reason", issue.reason},
                             {"fix", issue.fix}});
  }
  for (const stack::Aligned& aligned : explanation.aligned) {
    Json set = set_json(aligned.set);
    set["keeps"] = aligned.keeps;
    out["sets"].push_back(std::move(set));
  }
  return out;
}

}  // namespace yoke::cli
