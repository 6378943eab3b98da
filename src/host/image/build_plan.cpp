#include "yoke/image/build_plan.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "build_facts.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;
using stack::Candidate;

[[noreturn]] void refuse(std::string message, std::string hint = "see yoke image build --help") {
  throw Error(Code::invalid_argument, std::move(message), std::move(hint));
}

class Planner {
 public:
  Planner(const BuildRequest& request, const BuildHost& host, const stack::Matrix& matrix,
          const ImageParts& parts)
      : request_(request), host_(host), matrix_(matrix), parts_(parts) {}

  BuildPlan plan() {
    features();
    base();
    choose_set();
    toolkit();
    packages();
    wheels();
    labels();
    out_.tag = request_.tag.empty() ? "localhost/yoke:v" + out_.release : request_.tag;
    return std::move(out_);
  }

 private:
  void features() {
    out_.features.insert(parts_.features.begin(), parts_.features.end());
    std::vector<std::string> known = parts_.features;
    known.insert(known.end(), parts_.more.begin(), parts_.more.end());
    for (const auto* names : {&request_.with, &request_.without}) {
      for (const std::string& name : *names) {
        if (std::find(known.begin(), known.end(), name) == known.end())
          refuse(text("no part of an image is called '", name, "'"),
                 core::unknown_name_hint(name, known));
        if (names == &request_.with) {
          out_.features.insert(name);
        } else {
          out_.features.erase(name);
        }
      }
    }
  }

  /// The torch that was asked for, as conditions.
  [[nodiscard]] stack::Specifiers torch_wish() const {
    std::string release = request_.release;
    if (release == "newest") release = parts_.yoke.back();
    if (release.starts_with('v')) release.erase(0, 1);
    const auto wish = stack::Specifiers::parse_loosely(release);
    if (release.empty() || !wish)
      refuse(text("'", request_.release, "' is no release of torch"),
             "for example v2.9, or newest");
    return *wish;
  }

  void base() {
    const BaseImage* base = nullptr;
    if (request_.base.empty()) {
      base = base_for_python();
      out_.base = base->image;
    } else {
      out_.base = request_.base;
      base = known_base();
    }
    out_.python = request_.python;
    if (base != nullptr) {
      out_.system = base->system;
      out_.labels.glibc = base->glibc;
      if (out_.python.empty()) out_.python = base->python;
      if (out_.python != base->python)
        refuse(text("base ", out_.base, " has Python ", base->python, ", not ", out_.python),
               "leave --base away, or name one with that Python");
    }
    if (out_.python.empty())
      refuse(text("which Python base ", out_.base, " has is not known"), "add --python 3.12");
  }

  /// The first base whose Python has wheels of that torch, or the one with the Python asked for.
  const BaseImage* base_for_python() const {
    for (const BaseImage& one : parts_.bases) {
      if (!request_.python.empty() && one.python != request_.python) continue;
      const auto resolution =
          stack::resolve(matrix_, {.torch = torch_wish(), .python = one.python});
      if (!request_.python.empty() || !resolution.fits.empty()) return &one;
    }
    std::vector<std::string> pythons;
    for (const BaseImage& one : parts_.bases) pythons.push_back(one.python);
    if (request_.python.empty()) return &parts_.bases.front();  // choose_set() says what is wrong
    refuse(text("no base here has Python ", request_.python),
           text("there are ", core::joined(pythons), "; or name a base with --base"));
  }

  /// What the base's name tells: that of an image, a suite's, or the system in it.
  const BaseImage* known_base() const {
    const std::string suite = request_.base.starts_with("apt:") ? request_.base.substr(4) : "";
    const std::string system = request_.base_system.empty()
                                   ? base_facts({.text = request_.base}).system
                                   : request_.base_system;
    const auto found =
        std::find_if(parts_.bases.begin(), parts_.bases.end(), [&](const BaseImage& one) {
          return one.suite == suite || one.image == request_.base ||
                 (suite.empty() && !system.empty() && one.system == system);
        });
    if (found != parts_.bases.end()) return &*found;
    if (suite.empty()) return nullptr;
    refuse(text("--base ", request_.base, ": no such suite"),
           "known: apt:bookworm, apt:trixie, apt:jammy, apt:noble");
  }

  void choose_set() {
    stack::Wishes wishes{.torch = torch_wish(), .python = out_.python};
    if (out_.labels.glibc) wishes.glibc = stack::Version::parse(*out_.labels.glibc);
    const bool is_auto = request_.cuda == "auto" || request_.cuda.empty();
    if (!is_auto) {
      wishes.cuda = stack::parse_cuda_wish(request_.cuda);
      if (!wishes.cuda) refuse(text("--cuda '", request_.cuda, "'"), "auto, none, 12, or 12.8");
    } else if (host_.driver) {
      wishes.driver = host_.driver;
      wishes.cards = host_.cards;
    }
    const stack::Resolution resolution = stack::resolve(matrix_, wishes);
    // Where a driver was asked and serves no CUDA, the build without one fits as well.
    const auto fits =
        std::find_if(resolution.fits.begin(), resolution.fits.end(), [&](const Candidate& one) {
          return one.patch != nullptr && (!is_auto || !one.build->is_cpu());
        });
    if (fits == resolution.fits.end()) no_set(resolution);
    out_.set = *fits;
    out_.release = out_.set.release->torch.series(2);
    out_.why = reason(is_auto);
  }

  [[nodiscard]] std::string reason(bool is_auto) const {
    const std::string cuda = out_.set.build->is_cpu() ? "none" : out_.set.build->cuda_series();
    if (!is_auto) return text("CUDA ", cuda, ": asked for");
    if (!host_.driver)
      return text("CUDA ", cuda, ": no NVIDIA driver here, so what pip gives for torch ",
                  out_.set.patch->torch.text());
    std::string cards;
    for (const stack::CardFacts& card : host_.cards) {
      if (card.arch && cards.find(card.arch->sm()) == std::string::npos)
        cards += " " + card.arch->sm();
    }
    return text("CUDA ", cuda, ": ", name(out_.set.driver), " with driver ", host_.driver->text(),
                cards.empty() ? "" : ", code for" + cards);
  }

  [[noreturn]] void no_set(const stack::Resolution& resolution) const {
    std::vector<std::string> reasons;
    for (const auto* group : {&resolution.excluded, &resolution.maybe}) {
      for (const Candidate& one : *group) {
        std::vector<std::string> against;
        for (const stack::Finding& finding : one.against) against.push_back(finding.reason);
        if (reasons.size() < 6) reasons.push_back(one.title() + ": " + core::joined(against, "; "));
      }
    }
    std::string hint = "yoke stack resolve shows what there is";
    if (!resolution.neighbours.empty()) {
      const stack::Neighbour& near = resolution.neighbours.front();
      const bool says_it = near.change.find(near.set.title()) != std::string::npos;
      hint = text("nearest: torch ", near.set.title(), says_it ? "" : " " + near.change);
    }
    throw Error(Code::unsupported,
                text("no set fits torch ", request_.release, ", CUDA ", request_.cuda, ", Python ",
                     out_.python, reasons.empty() ? "" : " (" + core::joined(reasons, " | ") + ")"),
                hint);
  }

  /// nvcc has to be of torch's own major version: from wheels where there are any, else the base's.
  void toolkit() {
    if (!out_.has("toolkit")) return;
    if (out_.set.build->is_cpu())
      refuse("--with toolkit: a torch without CUDA has no use for nvcc");
    const std::string series = out_.set.build->cuda_series();
    const std::string major = series.substr(0, series.find('.'));
    const std::string in_base = base_facts({.text = out_.base}).cuda;
    if (!in_base.empty() && in_base.substr(0, in_base.find('.')) != major)
      refuse(text("--with toolkit: base ", out_.base, " has CUDA ", in_base, ", torch ",
                  out_.torch(), " has ", series, "; extensions would not load"),
             text("a base with CUDA ", major));
    if (in_base.empty() && !parts_.toolkit.contains(major)) {
      throw Error(Code::unsupported,
                  text("--with toolkit: there are no wheels with nvcc for CUDA ", major),
                  text("--base docker.io/nvidia/cuda:", full_version(series),
                       "-devel-ubuntu24.04, or a torch with CUDA 13"));
    }
    toolkit_wheels_ = in_base.empty() ? parts_.toolkit.at(major) : std::vector<std::string>{};
  }

  /// nvidia/cuda's tags have three numbers.
  [[nodiscard]] std::string full_version(const std::string& series) const {
    return out_.set.build->cuda.value_or(series + ".0");
  }

  void packages() {
    std::set<std::string> names;
    for (const auto& [feature, packages] : parts_.apt) {
      if (feature == "always" || out_.has(feature)) names.insert(packages.begin(), packages.end());
    }
    out_.packages.assign(names.begin(), names.end());
  }

  void wheels() {
    const stack::Patch& patch = *out_.set.patch;
    const stack::Build& build = *out_.set.build;
    const bool on_pypi = build.is_default.value_or(false);
    out_.index_url = request_.index_url;
    const bool names_build = out_.index_url.ends_with("/" + build.wheel) || !on_pypi;
    const std::string local = names_build ? "+" + build.wheel : "";
    if (!on_pypi && request_.index_url.empty())
      out_.extra_index_url = parts_.torch_index + build.wheel;
    for (const std::string& name : parts_.pip.at("torch")) {
      if (name == "torch") {
        out_.wheels.push_back("torch==" + patch.torch.text() + local);
      } else if (name == "torchvision") {
        if (patch.torchvision && *patch.torchvision != stack::kNone)
          out_.wheels.push_back("torchvision==" + *patch.torchvision + local);
      } else {
        out_.wheels.push_back(name +
                              (name == "numpy" && patch.torch < matrix_.numpy_two ? "<2" : ""));
      }
    }
    for (const auto& [feature, names] : parts_.pip) {
      if (out_.has(feature)) out_.wheels.insert(out_.wheels.end(), names.begin(), names.end());
    }
    // nvcc's wheels name no version of each other: unpinned, parts of a newer CUDA would come.
    for (const std::string& name : toolkit_wheels_)
      out_.wheels.push_back(name + "==" + build.cuda_series() + ".*");
  }

  void labels() {
    const stack::Fact glibc = out_.labels.glibc;
    out_.labels = stack::labels_of(*out_.set.patch, *out_.set.build);
    out_.labels.glibc = glibc;
    out_.labels.python = out_.python;
    const auto cuda = stack::Version::parse(out_.labels.cuda.value_or(""));
    for (const stack::Toolkit& family : matrix_.families) {
      if (cuda && family.driver && family.cuda.release()[0] == cuda->release()[0])
        out_.labels.driver = family.driver->text();
    }
  }

  const BuildRequest& request_;
  const BuildHost& host_;
  const stack::Matrix& matrix_;
  const ImageParts& parts_;
  std::vector<std::string> toolkit_wheels_;
  BuildPlan out_;
};

}  // namespace

BuildPlan plan_build(const BuildRequest& request, const BuildHost& host,
                     const stack::Matrix& matrix, const ImageParts& parts) {
  return Planner(request, host, matrix, parts).plan();
}

}  // namespace yoke::image
