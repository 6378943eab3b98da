#include "yoke/shm/team.hpp"

#include <utility>

#include "rendezvous.hpp"
#include "team_state.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

std::vector<Member> checked_meet(const Exchange& exchange, const TeamOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw Error(Code::invalid_argument,
                core::text("make a team: rank ", options.rank, " of ", options.size, " ranks"));
  }
  if (!exchange && options.size > 1) {
    throw Error(Code::invalid_argument,
                core::text("make a team of ", options.size, " ranks: no exchange given"));
  }
  const std::size_t least = kChunks * kCacheLine * static_cast<std::size_t>(options.size);
  if (options.staging_bytes < least) {
    throw Error(Code::invalid_argument,
                core::text("make a team of ", options.size, " ranks: ", options.staging_bytes,
                           " B of staging, at least ", least, " B are needed"));
  }
  return meet(exchange, options);
}

std::shared_ptr<const Region> staging_of(const Engine& engine, std::size_t bytes) {
  auto region = std::make_shared<Region>();
  region->bytes = bytes;
  region->rank = engine.rank();
  for (int rank = 0; rank < engine.size(); ++rank) {
    region->base.push_back(engine.member(rank).staging);
    region->segments.push_back(engine.member(rank).segment);
  }
  return region;
}

}  // namespace

Team::State::State(const Exchange& exchange, const TeamOptions& options)
    : engine(checked_meet(exchange, options), options),
      mail(engine),
      chunk_bytes(options.staging_bytes / kChunks / kCacheLine * kCacheLine),
      staging(staging_of(engine, options.staging_bytes)) {}

Team::Team(const Exchange& exchange, TeamOptions options)
    : state_(std::make_unique<State>(exchange, options)) {}

Team::~Team() = default;

int Team::rank() const noexcept { return state_->engine.rank(); }
int Team::size() const noexcept { return state_->engine.size(); }
bool Team::progress() { return state_->engine.progress(); }
void Team::wait(Ticket ticket) { state_->engine.wait(ticket); }

bool Team::done(Ticket ticket) {
  state_->engine.progress();
  return state_->engine.complete(ticket);
}

void Team::abort(std::string_view reason) noexcept {
  state_->engine.leave(reason, /*follows=*/false);
}

}  // namespace yoke::shm
