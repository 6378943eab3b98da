#include "yoke/comm/world.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "backends.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/text.hpp"

namespace yoke::comm {
namespace {

using core::text;

const std::vector<std::string> kBackends{"auto", "shm", "gloo", "nccl"};

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Tells hosts apart even where containers share a name; empty where /proc does not say.
std::string boot_id() {
  try {
    return std::string(core::trimmed(core::read_file("/proc/sys/kernel/random/boot_id")));
  } catch (const Error&) {
    return {};
  }
}

void require_sane(const WorldOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw Error(Code::invalid_argument,
                text("join: rank ", options.rank, " of ", options.world_size, " ranks"),
                "ranks count from 0 to world size - 1");
  }
  if (std::find(kBackends.begin(), kBackends.end(), options.backend) == kBackends.end()) {
    throw Error(Code::invalid_argument, text("join: unknown backend \"", options.backend, "\""),
                core::unknown_name_hint(options.backend, kBackends));
  }
  if (options.world_size > 1 && options.master_port <= 0 && !options.store_descriptor) {
    throw Error(Code::invalid_argument,
                text("join ", options.world_size, " ranks: no port to meet at"),
                "set MASTER_ADDR and MASTER_PORT, or start the ranks with yoke launch");
  }
}

at::Device device_for(const WorldOptions& options) {
  if (options.device) return *options.device;
  const bool wants_cards = options.backend == "auto" || options.backend == "nccl";
  const int cards = wants_cards ? cuda_device_count() : 0;
  if (cards == 0) {
    if (options.backend == "nccl") {
      throw Error(Code::unsupported,
                  text("rank ", options.rank, ": join by nccl: torch sees no card"),
                  "use gloo or shm, or check the driver and CUDA_VISIBLE_DEVICES");
    }
    return at::kCPU;
  }
  // A launcher that gives each rank its own card shows only that one.
  if (cards == 1 && options.local_world_size > 1 &&
      std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) {
    return {at::kCUDA, 0};
  }
  if (options.local_rank >= cards) {
    throw Error(Code::invalid_argument,
                text("rank ", options.rank, ": local rank ", options.local_rank,
                     " has no card: torch sees ", cards),
                text("start at most ", cards, " ranks on this host"));
  }
  return {at::kCUDA, static_cast<at::DeviceIndex>(options.local_rank)};
}

/// What each rank tells the others when it joins.
struct Member {
  std::string host;
  std::string boot;
  std::string device;
  std::string backend;  // asked for
  long pid = 0;

  [[nodiscard]] std::string encoded() const {
    return text(host, '\n', boot, '\n', device, '\n', backend, '\n', pid);
  }
  static Member decoded(const std::string& line) {
    const auto parts = core::split(line, '\n');
    if (parts.size() != 5)
      throw Error(Code::internal, "join: a rank introduced itself in an unknown form");
    return {parts[0], parts[1], parts[2], parts[3], core::parse_integer(parts[4]).value_or(0)};
  }
  [[nodiscard]] std::string called() const { return text("pid ", pid, " on host ", host); }
};

// A second process with our rank is told at once; it must not wait for ranks that are complete
// without it.
void require_unique(const c10::intrusive_ptr<c10d::Store>& store, const WorldOptions& options,
                    const Member& me) {
  const std::string key = text("member/", options.rank);
  const std::string mine = me.encoded();
  const std::vector<std::uint8_t> nothing;
  const auto kept =
      store->compareSet(key, nothing, std::vector<std::uint8_t>(mine.begin(), mine.end()));
  const std::string holder(kept.begin(), kept.end());
  if (holder != mine) {
    throw Error(Code::invalid_argument,
                text("rank ", options.rank, " joined twice (", Member::decoded(holder).called(),
                     ", ", me.called(), ")"),
                "start each rank once; a process of an earlier run may still be alive");
  }
}

// Said before the ranks wait for one another.
void warn_of_loopback(const core::RankFacts& facts, const core::EnvironmentMap& environment) {
  if (facts.local_rank != 0 || facts.launcher == "yoke") return;
  const std::string warning = core::loopback_warning(facts, environment, core::own_addresses());
  if (!warning.empty()) core::say(core::Level::warning, warning);
}

// The name under which all ranks of a job keep their telemetry. Ranks that somebody started by
// hand share at least the port.
std::string telemetry_job(const WorldOptions& options) {
  if (!options.job_id.empty()) return options.job_id;
  return options.world_size > 1 ? text("port-", options.master_port) : text("pid-", ::getpid());
}

void require_one_backend(const WorldOptions& options, const std::vector<Member>& members) {
  for (std::size_t peer = 0; peer < members.size(); ++peer) {
    if (members[peer].backend == options.backend) continue;
    throw Error(Code::invalid_argument,
                text("rank ", options.rank, ": join by ", options.backend, ": rank ", peer,
                     " asks for ", members[peer].backend),
                "give all ranks the same YOKE_BACKEND");
  }
}

void require_own_cards(const WorldOptions& options, const std::vector<Member>& members,
                       at::Device device) {
  if (!device.is_cuda()) return;
  for (std::size_t peer = 0; peer < members.size(); ++peer) {
    const Member& mine = members[static_cast<std::size_t>(options.rank)];
    if (static_cast<int>(peer) == options.rank || members[peer].host != mine.host ||
        members[peer].boot != mine.boot || members[peer].device != mine.device) {
      continue;
    }
    // Ranks that see one card each, by CUDA_VISIBLE_DEVICES, all call it cuda:0.
    if (cuda_device_count() == 1 && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) return;
    throw Error(Code::invalid_argument,
                text("rank ", options.rank, " and rank ", peer, " are both on ", mine.device,
                     " of host ", mine.host),
                "give each rank a card of its own: one rank per card");
  }
}

}  // namespace

struct World::State {
  WorldOptions options;
  at::Device device = at::kCPU;
  bool one_host = true;
  c10::intrusive_ptr<c10d::Store> store;
  // Destroyed in the opposite order: the card's group may use the host group for its counts.
  std::unique_ptr<core::TelemetryWriter> telemetry;
  std::unique_ptr<Group> host;
  std::unique_ptr<Group> own;  // null where the host group serves the device
};

World::World(std::unique_ptr<State> state) : state_(std::move(state)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

WorldOptions World::options_from(const core::RankFacts& facts) {
  WorldOptions options;
  options.rank = facts.rank;
  options.world_size = facts.world_size;
  options.local_rank = facts.local_rank;
  options.local_world_size = facts.local_world_size;
  if (!facts.master_address.empty()) options.master_address = facts.master_address;
  options.master_port = facts.master_port;
  if (options.master_port == 0 && options.world_size > 1) {
    // MPI names no port. All ranks of a job know its id, so they agree on one: below Linux's
    // ephemeral ports (from 32768), above those that services listen at.
    options.master_port =
        20'000 + static_cast<int>(std::hash<std::string>{}(facts.job_id) % 12'000);
  }
  if (facts.store_descriptor >= 0) options.store_descriptor = facts.store_descriptor;
  options.store_served_by_agent = facts.agent_store;
  options.job_id = facts.job_id;
  return options;
}

World World::from_environment() {
  const core::EnvironmentMap environment = core::environment();
  const core::RankFacts facts = core::rank_facts(environment);
  warn_of_loopback(facts, environment);
  WorldOptions options = options_from(facts);
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string backend = value("YOKE_BACKEND"); !backend.empty())
    options.backend = backend;
  if (const std::string seconds = value("YOKE_TIMEOUT"); !seconds.empty()) {
    const auto parsed = core::parse_integer(seconds);
    if (!parsed || *parsed < 1) {
      throw Error(Code::invalid_argument, text("YOKE_TIMEOUT=", seconds),
                  "give whole seconds, at least 1");
    }
    options.timeout = std::chrono::seconds(*parsed);
    options.join_timeout =
        std::min<std::chrono::milliseconds>(options.join_timeout, options.timeout);
  }
  const std::string check = value("YOKE_CHECK_COLLECTIVES");
  options.check_calls = !check.empty() && check != "0";
  return join(options);
}

World World::join(const WorldOptions& options) {
  require_sane(options);
  auto state = std::make_unique<State>();
  state->options = options;
  state->device = device_for(options);
  set_current_device(state->device);
  state->telemetry = std::make_unique<core::TelemetryWriter>(
      core::telemetry_root(core::environment()),
      core::TelemetryIdentity{.job = telemetry_job(options),
                              .rank = options.rank,
                              .world_size = options.world_size,
                              .local_rank = options.local_rank,
                              .local_world_size = options.local_world_size,
                              .host = host_name()});
  const Member me{host_name(), boot_id(), state->device.str(), options.backend, ::getpid()};
  std::vector<Member> members{me};
  if (options.world_size > 1) {
    state->store = open_store({.host = options.master_address,
                               .port = options.master_port,
                               .rank = options.rank,
                               .size = options.world_size,
                               .served_by_agent = options.store_served_by_agent,
                               .listen_descriptor = options.store_descriptor,
                               .timeout = options.join_timeout});
    require_unique(state->store, options, me);
    members.clear();
    for (const std::string& line :
         exchange_strings(state->store, "join", options.rank, options.world_size, me.encoded(),
                          options.join_timeout)) {
      members.push_back(Member::decoded(line));
    }
    state->store->setTimeout(options.timeout);
  }
  for (const Member& member : members) {
    if (member.host != me.host || member.boot != me.boot) state->one_host = false;
  }
  require_one_backend(options, members);
  require_own_cards(options, members, state->device);

  const BackendOptions backend{.rank = options.rank,
                               .size = options.world_size,
                               .timeout = options.timeout,
                               .interface_name = options.gloo_interface,
                               .one_host = state->one_host,
                               .check_calls = options.check_calls};
  if (options.world_size == 1) {
    state->host = alone_group();
  } else if (options.backend == "gloo") {
    state->host = gloo_group(state->store, backend);
  } else if (options.backend == "shm") {
    if (!state->one_host) {
      throw Error(Code::unsupported,
                  text("rank ", options.rank, ": join by shm: the ranks are on several hosts"),
                  "use gloo or nccl");
    }
    state->host = shm_group(state->store, backend);
  } else {
    try {
      if (state->one_host) state->host = shm_group(state->store, backend);
    } catch (const Error& error) {
      if (error.code() != Code::unsupported)
        throw;  // agreed by all ranks, so all fall back together
    }
    if (!state->host) state->host = gloo_group(state->store, backend);
  }
  if (state->device.is_cuda()) {
    // Also for one rank: a program must not behave otherwise on one card, and the table's numbers
    // count the calls.
    const auto store = state->store ? state->store : open_store({});
    state->own = nccl_group(store, backend, state->device, state->host.get());
    state->store = store;
  }
  (state->own ? *state->own : *state->host).record_to(state->telemetry.get());
  return World(std::move(state));
}

World World::of(std::unique_ptr<Group> group, at::Device device) {
  auto state = std::make_unique<State>();
  state->options.rank = state->options.local_rank = group->rank();
  state->options.world_size = state->options.local_world_size = group->size();
  state->device = device;
  state->telemetry = std::make_unique<core::TelemetryWriter>(
      core::telemetry_root(core::environment()),
      core::TelemetryIdentity{
          .job = text("pid-", ::getpid()), .rank = group->rank(), .world_size = group->size()});
  state->host = std::move(group);
  state->host->record_to(state->telemetry.get());
  return World(std::move(state));
}

int World::rank() const noexcept { return state_->options.rank; }
int World::size() const noexcept { return state_->options.world_size; }
int World::local_rank() const noexcept { return state_->options.local_rank; }
int World::local_size() const noexcept { return state_->options.local_world_size; }
bool World::one_host() const noexcept { return state_->one_host; }
at::Device World::device() const noexcept { return state_->device; }
const std::string& World::job_id() const noexcept { return state_->options.job_id; }
Group& World::group() noexcept { return state_->own ? *state_->own : *state_->host; }
Group& World::host_group() noexcept { return *state_->host; }
core::TelemetryWriter& World::telemetry() noexcept { return *state_->telemetry; }

}  // namespace yoke::comm
