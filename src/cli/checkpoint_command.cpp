#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "option_words.hpp"
#include "yoke/archive/archive.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;

constexpr const char* kUsage =
    "usage: yoke checkpoint ls RUN [--json]\n"
    "       yoke checkpoint verify PATH... [--json]\n"
    "       yoke checkpoint show PATH [--json]\n"
    "       yoke checkpoint convert SOURCE TARGET\n"
    "       yoke checkpoint average SOURCE... TARGET\n"
    "\n"
    "Looks at what a run saved and at weights of others, without torch and without a GPU. A PATH "
    "is\n"
    "a run folder, a checkpoint step-N in it, or a .safetensors, .pt, .pth or .ckpt file; a "
    "TARGET\n"
    "ends in .safetensors or .pt.\n"
    "\n"
    "exit codes: 0 all is whole; 1 something is damaged; 2 usage, or nothing is there\n";

struct Found {
  fs::path folder;
  std::string damage;  // empty: none
};

fs::path root_of(const fs::path& run) {
  std::error_code error;
  return fs::is_directory(run / "checkpoints", error) ? run / "checkpoints" : run;
}

// The checkpoints of a run, newest first.
std::vector<Found> checkpoints_in(const fs::path& run) {
  const archive::SealedFolders found =
      archive::sealed_folders(root_of(run), archive::kCheckpointPrefix);
  std::vector<Found> all;
  for (const fs::path& folder : found.good) all.push_back({folder, {}});
  for (const archive::SkippedFolder& skipped : found.skipped)
    all.push_back({skipped.folder, skipped.why});
  return all;
}

Json facts_of(const Found& found) {
  Json facts{{"path", found.folder.string()}, {"whole", found.damage.empty()}};
  if (!found.damage.empty()) {
    facts["reason"] = found.damage;
    return facts;
  }
  const archive::Seal seal = archive::read_seal(found.folder);
  std::uint64_t bytes = 0;
  for (const archive::SealedFile& file : seal.files) bytes += file.bytes;
  facts["step"] = seal.about.at("step");
  facts["ranks"] = seal.about.at("ranks");
  facts["bytes"] = bytes;
  return facts;
}

void print(const std::string& words) {
  if (std::fputs(words.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(Code::io, "write the answer: standard output does not take it");
}

std::string line_of(const Json& facts) {
  const auto path = facts["path"].get<std::string>();
  if (facts.contains("reason"))
    return text(path, "  damaged: ", facts["reason"].get<std::string>());
  std::string line = text(path, "  whole");
  if (facts.contains("step")) line += text("  step ", facts["step"].get<std::int64_t>());
  if (facts.contains("ranks")) line += text("  ranks ", facts["ranks"].get<int>());
  if (facts.contains("format")) line += text("  ", facts["format"].get<std::string>());
  if (facts.contains("tensors"))
    line += text("  ", facts["tensors"].get<std::size_t>(), " tensors");
  return line + text("  ", core::bytes_text(facts["bytes"].get<std::uint64_t>()));
}

// Prints what was found; the exit code.
int report(const Json& all, bool json) {
  bool whole = true;
  std::string words;
  for (const Json& facts : all) {
    whole = whole && facts["whole"].get<bool>();
    words += line_of(facts) + "\n";
  }
  print(json ? core::json_text({{"checkpoints", all}}) : words);
  return whole ? 0 : 1;
}

int list(const OptionWords& options) {
  Json all = Json::array();
  for (const Found& found : checkpoints_in(options.rest.at(0))) all.push_back(facts_of(found));
  if (all.empty()) {
    throw Error(Code::not_found, text("no checkpoint in ", root_of(options.rest[0]).string()),
                "give a run folder, or the folder in which checkpoints lie");
  }
  return report(all, options.has("--json"));
}

std::uint64_t bytes_of(const std::vector<archive::NamedTensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const archive::NamedTensor& tensor : tensors) bytes += archive::nbytes(tensor.tensor);
  return bytes;
}

// Reads all of it.
Json check_weights(const fs::path& path) try {
  const archive::Weights weights = archive::read_weights(path);
  return {{"path", path.string()},
          {"whole", true},
          {"format", weights.format},
          {"tensors", weights.tensors.size()},
          {"bytes", bytes_of(weights.tensors)}};
} catch (const Error& error) {
  if (error.code() == Code::not_found) throw;
  return {{"path", path.string()}, {"whole", false}, {"reason", error.message()}};
}

Json check_checkpoint(Found found) {
  try {
    if (found.damage.empty()) archive::verify(found.folder);
  } catch (const Error& error) {
    found.damage = error.message();
  }
  return facts_of(found);
}

int verify(const OptionWords& options) {
  Json all = Json::array();
  for (const std::string& word : options.rest) {
    const fs::path path = word;
    std::error_code error;
    if (archive::is_sealed(path)) {
      all.push_back(check_checkpoint({path, {}}));
      continue;
    }
    const std::vector<Found> found = checkpoints_in(path);
    for (const Found& one : found) all.push_back(check_checkpoint(one));
    if (found.empty() || fs::exists(path / "model.safetensors", error))
      all.push_back(check_weights(path));
  }
  return report(all, options.has("--json"));
}

int show(const OptionWords& options) {
  archive::Weights weights = archive::read_weights(options.rest.at(0));
  if (options.has("--json")) {
    Json tensors = Json::array();
    for (const archive::NamedTensor& tensor : weights.tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", archive::name(tensor.tensor.dtype)},
                         {"shape", tensor.tensor.shape},
                         {"bytes", archive::nbytes(tensor.tensor)}});
    }
    print(core::json_text(
        {{"format", weights.format}, {"notes", weights.notes}, {"tensors", tensors}}));
    return 0;
  }
  std::string words = text(weights.format, ", ", weights.tensors.size(), " tensors, ",
                           core::bytes_text(bytes_of(weights.tensors)), "\n");
  for (const std::string& note : weights.notes) words += note + "\n";
  for (const archive::NamedTensor& tensor : weights.tensors)
    words += text(tensor.name, "  ", archive::describe(tensor.tensor), "\n");
  print(words);
  return 0;
}

void write(const fs::path& target, const std::vector<archive::NamedTensor>& tensors) {
  const std::string ending = target.extension().string();
  if (ending == ".safetensors") {
    archive::write_safetensors(target, tensors, {{"format", "pt"}});
  } else if (ending == ".pt" || ending == ".pth") {
    archive::write_pytorch(target, archive::state_dict(tensors));
  } else {
    throw Error(Code::invalid_argument, text(target.string(), ": neither .safetensors nor .pt"),
                "the target's ending says its format");
  }
}

// The weights without their wrappers' prefixes, and a line about each thing that was left out.
archive::Weights plain_weights(const fs::path& path) {
  archive::Weights weights = archive::read_weights(path);
  const std::vector<std::string> taken = archive::strip_prefixes(weights.tensors);
  if (!taken.empty()) weights.notes.push_back("prefixes taken off: " + core::joined(taken));
  for (const std::string& note : weights.notes)
    core::say(core::Level::info, text(path.string(), ": ", note));
  return weights;
}

std::string written(const fs::path& target, const std::vector<archive::NamedTensor>& tensors) {
  return text(target.string(), ": ", tensors.size(), " tensors, ",
              core::bytes_text(bytes_of(tensors)), "\n");
}

int convert(const OptionWords& options) {
  const fs::path target = options.rest.at(1);
  const archive::Weights weights = plain_weights(options.rest.at(0));
  write(target, weights.tensors);
  print(written(target, weights.tensors));
  return 0;
}

int average(const OptionWords& options) {
  std::vector<archive::Weights> states;
  for (auto word = options.rest.begin(); word != std::prev(options.rest.end()); ++word)
    states.push_back(plain_weights(*word));
  const fs::path target = options.rest.back();
  const std::vector<archive::NamedTensor> tensors = archive::average(states);
  write(target, tensors);
  print(written(target, tensors));
  return 0;
}

struct Action {
  const char* name;
  std::size_t least;  // paths
  std::size_t most;
  int (*run)(const OptionWords&);
};

constexpr std::size_t kAny = 10'000;
constexpr std::array kActions{Action{"ls", 1, 1, list}, Action{"verify", 1, kAny, verify},
                              Action{"show", 1, 1, show}, Action{"convert", 2, 2, convert},
                              Action{"average", 2, kAny, average}};

const Action& action_of(const std::string& word) {
  std::vector<std::string> names;
  for (const Action& action : kActions) {
    if (word == action.name) return action;
    names.emplace_back(action.name);
  }
  throw Error(Code::invalid_argument, text("yoke checkpoint ", word, ": unknown"),
              core::unknown_name_hint(word, names));
}

}  // namespace

int checkpoint_command(const std::vector<std::string>& words) try {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print(kUsage);
    return words.empty() ? 2 : 0;
  }
  const Action& action = action_of(words[0]);
  const OptionWords options = read_options(
      {.command = text("yoke checkpoint ", action.name), .flags = {"--json", "--help"}},
      {words.begin() + 1, words.end()});
  if (options.has("--help")) {
    print(kUsage);
    return 0;
  }
  if (options.rest.size() < action.least || options.rest.size() > action.most) {
    throw Error(Code::invalid_argument,
                text("yoke checkpoint ", action.name, ": ", options.rest.size(), " paths"),
                "see yoke checkpoint --help");
  }
  return action.run(options);
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  return error.code() == Code::corrupt_data ? 1 : 2;
}

}  // namespace yoke::cli
