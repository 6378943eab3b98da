#include "yoke/checkpoint/manager.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

#include "yoke/archive/safetensors.hpp"
#include "yoke/archive/sealed_folder.hpp"
#include "yoke/archive/weights.hpp"
#include "yoke/checkpoint/files.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;

constexpr std::string_view kPrefix = archive::kCheckpointPrefix;
constexpr const char* kState = "state.json";
constexpr const char* kTensors = ".safetensors";

std::string rank_file(int rank, const char* ending) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "rank-%05d%s", rank, ending);
  return name.data();
}

// An error as a line that another rank can throw.
Json to_json(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours == nullptr)
    return {{"code", core::name(Code::internal)}, {"message", error.what()}, {"hint", ""}};
  return {{"code", core::name(ours->code())}, {"message", ours->message()}, {"hint", ours->hint()}};
}

// What `action` gives on rank 0, on every rank; what it throws there, too.
std::string from_rank_0(comm::Group& group, const std::function<std::string()>& action) {
  Json mine;
  if (group.rank() == 0) {
    try {
      mine = {{"result", action()}};
    } catch (const std::exception& error) {
      mine = {{"error", to_json(error)}};
    }
  }
  const Json said =
      core::parse_json(group.all_gather_bytes(core::json_line(mine)).front(), "rank 0");
  if (!said.contains("error")) return said.at("result");
  const Json& error = said["error"];
  throw Error(core::code_from_name(error["code"].get<std::string>()), error["message"],
              error["hint"]);
}

// Runs `action` everywhere. Where any rank failed, all throw the first one's error.
void on_every_rank(comm::Group& group, const std::function<void()>& action) {
  std::string mine;
  try {
    action();
  } catch (const std::exception& error) {
    mine = core::json_line(to_json(error));
  }
  const auto all = group.all_gather_bytes(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const Json error = core::parse_json(all[rank], "an error");
    throw Error(core::code_from_name(error["code"].get<std::string>()),
                text("rank ", rank, ": ", error["message"].get<std::string>()), error["hint"]);
  }
}

Json read_json(const fs::path& path) {
  return core::parse_json(core::read_file(path), path.string());
}

std::map<std::string, StateDict> read_common(const fs::path& folder, const Json& names) {
  std::map<std::string, StateDict> common;
  for (const Json& name : names) {
    const auto file = name.get<std::string>();
    common.emplace(file, load_state_dict(folder / (file + kTensors)));
  }
  return common;
}

// One that load_newest() left out stands in the way once its step is done again.
void remove_damaged(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  try {
    archive::verify(folder);
  } catch (const Error& error) {
    core::say(core::Level::warning,
              text("checkpoint ", folder.string(), " is written once more: ", error.message()));
    fs::remove_all(folder);
  }
}

// Of all ranks, as far as rank 0 can tell: the others' own parts are of the size of its own.
std::uint64_t bytes_of(const RunState& state, int ranks) {
  const auto sum = [](const StateDict& tensors) {
    std::uint64_t bytes = 0;
    for (const auto& item : tensors) bytes += item.second.nbytes();
    return bytes;
  };
  std::uint64_t bytes = sum(state.own) * static_cast<std::uint64_t>(ranks);
  for (const auto& item : state.common) bytes += sum(item.second);
  return bytes;
}

}  // namespace

std::string folder_name(std::int64_t step) {
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "%s%012lld", kPrefix.data(),
                static_cast<long long>(step));
  return name.data();
}

Manager::Manager(comm::Group& group, ManagerOptions options)
    : group_(group), options_(std::move(options)) {
  static_cast<void>(from_rank_0(group_, [&] {
    core::make_writable_folder(options_.folder);
    archive::remove_unsealed(options_.folder);
    return std::string();
  }));
}

fs::path Manager::save(std::int64_t step, const RunState& state) {
  const fs::path target = options_.folder / folder_name(step);
  std::optional<archive::UnsealedFolder> unsealed;
  const fs::path folder = from_rank_0(group_, [&] {
    archive::require_space(options_.folder, bytes_of(state, group_.size()));
    remove_damaged(target);
    unsealed.emplace(target);
    return unsealed->path().string();
  });
  on_every_rank(group_, [&] { write_part(folder, state); });
  static_cast<void>(from_rank_0(group_, [&] {
    unsealed->seal({{"step", step}, {"ranks", group_.size()}});
    remove_old();
    return std::string();
  }));
  return target;
}

void Manager::write_part(const fs::path& folder, const RunState& state) const {
  save_state_dict(folder / rank_file(group_.rank(), kTensors), state.own);
  core::write_atomically(folder / rank_file(group_.rank(), ".json"),
                         core::json_text(state.own_facts));
  if (group_.rank() != 0) return;
  Json names = Json::array();
  for (const auto& [name, tensors] : state.common) {
    names.push_back(name);
    save_state_dict(folder / (name + kTensors), tensors);
  }
  core::write_atomically(folder / kState,
                         core::json_text({{"facts", state.facts}, {"tensors", names}}));
}

void Manager::remove_old() const {
  if (options_.keep <= 0) return;
  const auto found = archive::sealed_folders(options_.folder, kPrefix);
  for (std::size_t i = static_cast<std::size_t>(options_.keep); i < found.good.size(); ++i) {
    const auto step = core::parse_integer(found.good[i].filename().string().substr(kPrefix.size()));
    if (step && options_.keep_every > 0 && *step % options_.keep_every == 0) continue;
    archive::remove_sealed(found.good[i]);
  }
}

std::optional<LoadedState> Manager::load_newest() {
  const std::string folder = from_rank_0(group_, [&]() -> std::string {
    const auto found = archive::sealed_folders(options_.folder, kPrefix);
    for (const auto& [skipped, why] : found.skipped)
      core::say(core::Level::warning, text("checkpoint ", skipped.string(), " is left out: ", why));
    for (const fs::path& candidate : found.good) {
      try {
        archive::verify(candidate);
        return candidate.string();
      } catch (const Error& error) {
        core::say(core::Level::warning,
                  text("checkpoint ", candidate.string(), " is left out: ", error.message()));
      }
    }
    return {};
  });
  if (folder.empty()) return std::nullopt;
  return load(folder);
}

LoadedState Manager::load(const fs::path& folder) {
  LoadedState loaded{.folder = folder, .state = {}};
  on_every_rank(group_, [&] {
    const archive::Seal seal = archive::read_seal(folder);
    loaded.step = seal.about.at("step");
    loaded.ranks = seal.about.at("ranks");
    const Json state = read_json(folder / kState);
    loaded.state.facts = state.at("facts");
    loaded.state.common = read_common(folder, state.at("tensors"));
    if (group_.rank() >= loaded.ranks) return;
    loaded.state.own_facts = read_json(folder / rank_file(group_.rank(), ".json"));
    loaded.state.own = load_state_dict(folder / rank_file(group_.rank(), kTensors));
  });
  return loaded;
}

}  // namespace yoke::checkpoint
