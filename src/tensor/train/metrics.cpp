#include "yoke/train/metrics.hpp"

#include <algorithm>

#include <ATen/Functions.h>

#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::train {
namespace {

using core::text;
using Names = std::vector<std::string>;

// A name may hold any byte but this one.
constexpr char kSeparator = '\0';

Names without(const Names& names, const Names& taken) {
  Names left;
  std::copy_if(names.begin(), names.end(), std::back_inserter(left), [&](const std::string& name) {
    return std::find(taken.begin(), taken.end(), name) == taken.end();
  });
  return left;
}

/// The names that all ranks agree on; empty where no rank has any.
Names agreed_names(comm::Group& group, const Names& mine) {
  const std::vector<std::string> gathered =
      group.all_gather_bytes(core::joined(mine, {&kSeparator, 1}));
  Names names;
  int first = -1;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& line = gathered[static_cast<std::size_t>(rank)];
    if (line.empty()) continue;
    const Names theirs = core::split(line, kSeparator);
    if (first < 0) {
      first = rank;
      names = theirs;
      continue;
    }
    const Names only_first = without(names, theirs);
    const Names only_theirs = without(theirs, names);
    if (only_first.empty() && only_theirs.empty()) continue;
    throw Error(
        Code::invalid_argument,
        text("mean of metrics over ranks: rank ", first, " has [", core::joined(names), "], rank ",
             rank, " has [", core::joined(theirs),
             "]; on one of the two only: ", core::joined(only_first),
             only_first.empty() || only_theirs.empty() ? "" : ", ", core::joined(only_theirs)),
        "give the same names on every rank, with a count of 0 where there is nothing to count");
  }
  return names;
}

}  // namespace

std::vector<MetricSum> accuracy(const at::Tensor& output, const at::Tensor& target) {
  const at::Tensor hits = output.argmax(1).eq(target).sum();
  return {{"accuracy", hits, static_cast<double>(target.size(0))}};
}

void Means::add(const std::string& name, const at::Tensor& sum, double count) {
  const at::NoGradGuard no_grad;
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  const at::Tensor part = sum.detach().to(at::kDouble);
  if (found == entries_.end()) {
    entries_.push_back({name, part.clone(), count});
    return;
  }
  found->sum.add_(part);
  found->count += count;
}

NamedValues Means::over(comm::Group& group) {
  Names mine;
  for (const Entry& entry : entries_) mine.push_back(entry.name);
  const Names names = agreed_names(group, mine);
  if (names.empty()) return {};

  const auto length = static_cast<std::int64_t>(names.size());
  at::Tensor sums = at::zeros({length, 2}, at::kDouble);  // [name] sum, count
  auto rows = sums.accessor<double, 2>();
  for (std::int64_t i = 0; i < length; ++i) {
    for (const Entry& entry : entries_) {
      if (entry.name != names[static_cast<std::size_t>(i)]) continue;
      rows[i][0] = entry.sum.item<double>();
      rows[i][1] = entry.count;
    }
  }
  entries_.clear();
  group.all_reduce(sums);
  NamedValues values;
  for (std::int64_t i = 0; i < length; ++i)
    values.emplace_back(names[static_cast<std::size_t>(i)], rows[i][0] / rows[i][1]);
  return values;
}

}  // namespace yoke::train
