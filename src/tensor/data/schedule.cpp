#include "schedule.hpp"

namespace yoke::data {
namespace {

feed::PlanOptions starting_after(feed::PlanOptions options, std::int64_t samples) {
  options.first = samples;
  return options;
}

}  // namespace

Schedule::Schedule(const feed::PlanOptions& options, feed::Shuffle shuffle,
                   const feed::Position& start)
    : start_(start),
      shuffle_(shuffle),
      whole_(options),
      first_(starting_after(options, start.samples)) {}

Schedule::Step Schedule::step(std::int64_t ticket) const noexcept {
  if (ticket < first_.steps()) return {first_, start_.epoch, ticket};
  const std::int64_t later = ticket - first_.steps();
  return {whole_, start_.epoch + 1 + later / whole_.steps(), later % whole_.steps()};
}

std::shared_ptr<const feed::Order> Schedule::order(std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  auto& [stored_epoch, stored] = orders_[static_cast<std::size_t>(epoch % 2)];
  if (!stored || stored_epoch != epoch) {
    stored = std::make_shared<const feed::Order>(shuffle_, start_.seed, epoch, start_.length);
    stored_epoch = epoch;
  }
  return stored;
}

}  // namespace yoke::data
