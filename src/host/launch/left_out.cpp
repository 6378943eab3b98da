#include "left_out.hpp"

#include <csignal>
#include <cstddef>
#include <utility>
#include <vector>

#include "yoke/core/text.hpp"
#include "yoke/device/visible.hpp"

namespace yoke::launch {
namespace {

/// What a lost card or a killed process looks like, and a fault of the program does not.
bool from_below(const Failure& failure) {
  return failure.signal == SIGKILL || failure.signal == SIGBUS || failure.code == "cuda" ||
         failure.message.find("Xid") != std::string::npos ||
         failure.message.find("CUDA error") != std::string::npos;
}

}  // namespace

void LeftOut::hide_card(core::EnvironmentMap& extra, const core::EnvironmentMap& variables) const {
  if (!hidden_) return;
  const std::string own = core::value_or(extra, "CUDA_VISIBLE_DEVICES");
  const std::string filter = own.empty() ? core::value_or(variables, "CUDA_VISIBLE_DEVICES") : own;
  std::vector<std::string> cards;
  if (!filter.empty()) {
    cards = core::split(filter, ',');
  } else {
    const int count = device::visible_gpu_count(variables);
    for (int card = 0; card < count; ++card) cards.push_back(std::to_string(card));
  }
  const auto index = static_cast<std::size_t>(*hidden_);
  if (index >= cards.size()) return;
  cards.erase(cards.begin() + *hidden_);
  extra["CUDA_VISIBLE_DEVICES"] = core::joined(cards, ",");
}

std::string LeftOut::after(const Failure& failure, int first_rank) {
  if (options_.fewest == 0) return {};
  if (std::exchange(hidden_, std::nullopt)) {
    suspect_.reset();
    return core::text("trying all ", options_.ranks, " ranks again");
  }
  const int local = failure.rank - first_rank;
  if (failure.rank < 0 || !from_below(failure)) {
    suspect_.reset();
    return {};
  }
  if (suspect_ != local) {
    suspect_ = local;
    return {};
  }
  if (options_.ranks - 1 < options_.fewest) return {};
  hidden_ = local;
  return core::text("rank ", failure.rank, " ended two attempts in a row; going on with ",
                    options_.ranks - 1, " of ", options_.ranks, " ranks, without its card");
}

}  // namespace yoke::launch
