#include "yoke/stack/labels.hpp"

#include <array>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

using core::text;

constexpr const char* kPrefix = "yoke.stack.";

struct TextLabel {
  const char* name;
  Fact StackLabels::* value;
};

constexpr std::array kTexts{
    TextLabel{"torch", &StackLabels::torch}, TextLabel{"torchvision", &StackLabels::torchvision},
    TextLabel{"cuda", &StackLabels::cuda},   TextLabel{"cudnn", &StackLabels::cudnn},
    TextLabel{"nccl", &StackLabels::nccl},   TextLabel{"python", &StackLabels::python},
    TextLabel{"glibc", &StackLabels::glibc}, TextLabel{"driver", &StackLabels::driver},
};

[[noreturn]] void damaged(const std::string& name, const std::string& value) {
  throw Error(Code::corrupt_data,
              text("read label ", kPrefix, name, ": '", value, "' is not understood"),
              "docs/stack.md has the labels");
}

Fact find(const std::map<std::string, std::string>& labels, const std::string& name) {
  const auto found = labels.find(kPrefix + name);
  return found == labels.end() ? std::nullopt : Fact(found->second);
}

bool is_version_or_none(const std::string& value) {
  return value == kNone || Version::parse(value).has_value();
}

std::vector<Arch> read_archs(const std::string& value) {
  std::vector<Arch> out;
  for (const std::string& word : core::split(value, ' ')) {
    const auto arch = Arch::parse(word);
    if (!arch) damaged("sm", value);
    out.push_back(*arch);
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> to_labels(const StackLabels& stack) {
  std::map<std::string, std::string> out;
  for (const TextLabel& label : kTexts) {
    if (const Fact& value = stack.*label.value) out[kPrefix + std::string(label.name)] = *value;
  }
  if (stack.abi) out[kPrefix + std::string("abi")] = name(*stack.abi);
  if (stack.ptx) out[kPrefix + std::string("ptx")] = *stack.ptx ? "true" : "false";
  if (stack.archs && !stack.archs->empty()) {
    std::vector<std::string> words;
    for (const Arch& arch : *stack.archs) words.push_back(arch.dotted());
    out[kPrefix + std::string("sm")] = core::joined(words, " ");
  }
  return out;
}

StackLabels from_labels(const std::map<std::string, std::string>& labels) {
  StackLabels out;
  for (const TextLabel& label : kTexts) {
    const Fact value = find(labels, label.name);
    if (value && !is_version_or_none(*value)) damaged(label.name, *value);
    out.*label.value = value;
  }
  if (const Fact abi = find(labels, "abi")) {
    if (*abi != "old" && *abi != "new") damaged("abi", *abi);
    out.abi = *abi == "old" ? StringAbi::old_abi : StringAbi::new_abi;
  }
  if (const Fact ptx = find(labels, "ptx")) {
    if (*ptx != "true" && *ptx != "false") damaged("ptx", *ptx);
    out.ptx = *ptx == "true";
  }
  if (const Fact sm = find(labels, "sm")) out.archs = read_archs(*sm);
  return out;
}

StackLabels labels_of(const Patch& patch, const Build& build) {
  return {.torch = patch.torch.text() + "+" + build.wheel,
          .torchvision = patch.torchvision,
          .cuda = build.cuda,
          .cudnn = build.cudnn,
          .nccl = build.nccl,
          .abi = build.abi,
          .archs = build.archs,
          .ptx = build.ptx};
}

}  // namespace yoke::stack
