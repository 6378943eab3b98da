#include "yoke/feed/position.hpp"

#include <string>
#include <string_view>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

struct Difference {
  std::string_view what;
  std::string at_zero;
  std::string here;
  std::string_view hint;
};

[[noreturn]] void refuse(std::size_t rank, const Difference& difference) {
  throw Error(Code::invalid_argument,
              core::text("start loading: ", difference.what, " is ", difference.at_zero,
                         " on rank 0 and ", difference.here, " on rank ", rank),
              std::string(difference.hint));
}

template <class T>
void compare(std::size_t rank, std::string_view what, const T& at_zero, const T& here,
             std::string_view hint = "pass the same options on every rank") {
  if (at_zero != here) refuse(rank, {what, std::to_string(at_zero), std::to_string(here), hint});
}

}  // namespace

void require_agreement(std::span<const Agreement> by_rank) {
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const Agreement& zero = by_rank.front();
    const Agreement& here = by_rank[rank];
    compare(rank, "the seed", zero.seed, here.seed,
            "pass one seed on every rank: ranks that shuffle differently repeat some samples and "
            "never see others");
    compare(rank, "the number of samples", zero.length, here.length,
            "point every rank at the same data");
    compare(rank, "the batch size", zero.batch_size, here.batch_size);
    compare(rank, "the number of ranks", zero.world_size, here.world_size);
    compare(rank, "drop_last", zero.drop_last, here.drop_last);
    compare(rank, "shuffle", zero.shuffle, here.shuffle);
    compare(rank, "sharding", zero.sharding, here.sharding);
    compare(rank, "the data set's fingerprint", zero.fingerprint, here.fingerprint,
            "point every rank at the same data, listed in the same order");
  }
}

}  // namespace yoke::feed
