#include "checks.hpp"
#include "yoke/core/text.hpp"
#include "yoke/doctor/image.hpp"
#include "yoke/stack/labels.hpp"

namespace yoke::doctor {
namespace {

using core::text;
using stack::shown;

/// The facts of this machine that an image meets.
class ImageJudge {
 public:
  ImageJudge(const Labels& labels, const Machine& machine)
      : stack_(stack::from_labels(labels)), machine_(machine) {}

  Report report() {
    add("image.stack", "stack", stack_text());
    if (!stack_.torch) return std::move(out_);
    add("image.driver", "driver", driver());
    add("image.code", "code for the cards", code());
    add("image.pair", "torchvision", pair());
    return std::move(out_);
  }

 private:
  void add(std::string id, std::string title, Finding finding) {
    out_.results.push_back({.id = std::move(id),
                            .title = std::move(title),
                            .weight = Weight::blocks,
                            .finding = std::move(finding)});
  }

  [[nodiscard]] Finding stack_text() const {
    if (!stack_.torch)
      return warn("no labels yoke.stack.* in it, so nothing can be said before it runs",
                  "build it with yoke image build, or run yoke doctor inside it");
    return pass(text("torch ", *stack_.torch, ", CUDA ", shown(stack_.cuda), ", cuDNN ",
                     shown(stack_.cudnn), ", NCCL ", shown(stack_.nccl), ", Python ",
                     shown(stack_.python)));
  }

  [[nodiscard]] std::vector<stack::CardFacts> cards() const {
    std::vector<stack::CardFacts> out;
    for (const device::Card& card : machine_.cards().all) out.push_back(machine_.facts_of(card));
    return out;
  }

  [[nodiscard]] Finding driver() const {
    if (stack_.cuda == stack::kNone) return pass("built without CUDA");
    const auto& module = machine_.driver().module;
    if (!module) return skip("no NVIDIA driver on this machine: it would run on the CPU");
    const auto cuda = stack::Version::parse(stack_.cuda.value_or(""));
    if (!cuda) return warn("no label yoke.stack.cuda");
    stack::DriverJudgement worst{.verdict = stack::DriverVerdict::native};
    std::vector<stack::CardFacts> facts = cards();
    if (facts.empty()) facts.emplace_back();
    for (const stack::CardFacts& card : facts) {
      auto judgement = stack::judge_driver(machine_.matrix(), *module, *cuda, card);
      if (judgement.verdict >= worst.verdict) worst = std::move(judgement);
    }
    const std::string what = text(name(worst.verdict), ": ", worst.reason);
    if (worst.runs()) return pass(what);
    if (worst.verdict == stack::DriverVerdict::not_checked) return warn(what);
    return fail(what, "an image for an older CUDA: yoke stack resolve --driver " + module->text());
  }

  [[nodiscard]] Finding code() const {
    if (stack_.cuda == stack::kNone) return skip("built without CUDA");
    if (!stack_.archs) return warn("no label yoke.stack.sm");
    std::vector<std::string> missing;
    for (const stack::CardFacts& card : cards()) {
      if (!card.arch) return warn("a card whose architecture is not known");
      const auto verdict = stack::judge_code(*card.arch, stack_.archs, stack_.ptx);
      if (verdict == stack::CodeVerdict::none) missing.push_back(card.arch->sm());
      if (verdict == stack::CodeVerdict::not_checked)
        return warn(text("whether it has PTX for ", card.arch->sm(), " is not in its labels"));
    }
    const std::string has = stack::arch_list(*stack_.archs);
    if (!missing.empty())
      return fail(text("no code for ", core::joined(missing), ": it has ", has),
                  "an image for another CUDA: yoke stack resolve --gpu names it");
    return pass("it has " + has);
  }

  [[nodiscard]] Finding pair() const {
    const auto torch = stack::Version::parse(*stack_.torch);
    const auto vision = stack::Version::parse(stack_.torchvision.value_or(""));
    if (!torch || !vision) return skip("no torchvision in its labels");
    const auto judgement = stack::judge_pair(machine_.matrix(), *torch, "torchvision", *vision);
    if (judgement.severity < stack::Severity::warning) return pass(judgement.reason);
    return warn(judgement.reason, judgement.fix);
  }

  stack::StackLabels stack_;
  const Machine& machine_;
  Report out_;
};

}  // namespace

Report judge_image(const Labels& labels, const Machine& machine) {
  return ImageJudge(labels, machine).report();
}

}  // namespace yoke::doctor
