#include "yoke/launch/hang_watch.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::CollectiveKind;
using core::CollectiveSample;
using core::text;
using Time = core::Clock::Monotonic;

std::string seconds_text(std::chrono::nanoseconds time) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.1f s", std::chrono::duration<double>(time).count());
  return out.data();
}

std::string list(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  std::transform(ranks.begin(), ranks.end(), std::back_inserter(names),
                 [](int rank) { return std::to_string(rank); });
  return text(ranks.size() == 1 ? "rank " : "ranks ", core::joined(names));
}

std::string collective_text(const core::CollectiveFacts& facts) {
  std::string words = text(core::name(facts.kind), " #", facts.sequence);
  if (facts.bytes > 0) words += text(" (", core::bytes_text(facts.bytes), ")");
  if (facts.group != 0) words += text(" of group ", facts.group);
  return words;
}

/// The newest collective of the rank in the group; nothing if its ring has none.
const CollectiveSample* newest(const RankView& view, std::uint32_t group) {
  if (!view.telemetry) return nullptr;
  const auto& ring = view.telemetry->collectives;
  const auto found = std::find_if(ring.rbegin(), ring.rend(), [&](const CollectiveSample& one) {
    return one.facts.group == group;
  });
  return found == ring.rend() ? nullptr : &*found;
}

const CollectiveSample* numbered(const RankView& view, std::uint32_t group,
                                 std::uint64_t sequence) {
  const auto& ring = view.telemetry->collectives;
  const auto found = std::find_if(ring.rbegin(), ring.rend(), [&](const CollectiveSample& one) {
    return one.facts.group == group && one.facts.sequence == sequence;
  });
  return found == ring.rend() ? nullptr : &*found;
}

bool is_one_to_one(CollectiveKind kind) {
  return kind == CollectiveKind::send || kind == CollectiveKind::receive;
}

/// Whether two ranks in a collective of one number cannot meet in it.
bool differ(const core::CollectiveFacts& a, const core::CollectiveFacts& b) {
  if (is_one_to_one(a.kind) || is_one_to_one(b.kind)) return false;
  if (a.kind != b.kind) return true;
  const bool equal_sizes = a.kind == CollectiveKind::all_reduce ||
                           a.kind == CollectiveKind::broadcast ||
                           a.kind == CollectiveKind::reduce_scatter;
  return equal_sizes && (a.bytes != b.bytes || a.dtype != b.dtype);
}

/// Where a rank stands that did not come.
std::string standing(const RankView& view, std::uint32_t group, Time now) {
  if (view.ended) return text("rank ", view.rank, " has ended");
  std::string words = text("rank ", view.rank);
  if (view.state == 'T' || view.state == 't')
    words += " is stopped (SIGSTOP, or a debugger)";
  else if (view.state == 'D')
    words += " hangs in the kernel (state D)";
  else
    words += " runs";
  if (!view.telemetry) return words + " and writes no telemetry";
  const auto& seen = *view.telemetry;
  words += seen.step_ended ? text(", ", seconds_text(now - *seen.step_ended), " after step ",
                                  seen.last_step.step)
                           : ", before the end of its first step";
  if (const CollectiveSample* last = newest(view, group)) {
    words += text("; its last was ", collective_text(last->facts));
  } else {
    words += "; it has been in none";
  }
  if (seen.queue_depth && *seen.queue_depth == 0) words += "; its loader has no batch ready";
  return words;
}

bool waits(const CollectiveSample* sample) { return sample != nullptr && !sample->ended; }

}  // namespace

std::vector<HangReport> HangWatch::look(const std::vector<RankView>& ranks, Time now) {
  std::vector<HangReport> out;
  std::set<std::uint32_t> groups;
  for (const RankView& view : ranks) {
    look_at_process(view, now, out);
    if (!view.telemetry) continue;
    for (const CollectiveSample& one : view.telemetry->collectives) groups.insert(one.facts.group);
  }
  for (const std::uint32_t group : groups) look_at_group(ranks, group, now, out);
  return out;
}

void HangWatch::look_at_group(const std::vector<RankView>& ranks, std::uint32_t group, Time now,
                              std::vector<HangReport>& out) {
  // Who has waited longest, and in what.
  const RankView* first = nullptr;
  for (const RankView& view : ranks) {
    const CollectiveSample* sample = newest(view, group);
    if (view.ended || !waits(sample) || is_one_to_one(sample->facts.kind)) continue;
    if (first == nullptr || sample->began < newest(*first, group)->began) first = &view;
  }
  if (first == nullptr) return;
  const CollectiveSample& held = *newest(*first, group);
  const auto age = now - held.began;
  const std::string key =
      text(group, "/", held.facts.sequence, "/", held.began.time_since_epoch().count());

  std::vector<int> waiting;
  std::vector<const RankView*> absent;
  std::vector<int> unseen;
  for (const RankView& view : ranks) {
    const CollectiveSample* last = newest(view, group);
    // Of a group that is not the world only those are known that were once in it.
    if (last == nullptr && group != 0) continue;
    if (!view.telemetry && !view.ended) {
      unseen.push_back(view.rank);
      continue;
    }
    if (last == nullptr || last->facts.sequence < held.facts.sequence) {
      absent.push_back(&view);
      continue;
    }
    const CollectiveSample* same = numbered(view, group, held.facts.sequence);
    if (same == nullptr) continue;  // gone on long ago
    if (differ(held.facts, same->facts) && age >= options_.mismatch_after) {
      if (is_new("differ " + key)) {
        out.push_back(
            {text("the ranks are not in the same collective: rank ", first->rank, " waits in ",
                  collective_text(held.facts), ", dtype ", held.facts.dtype, ", rank ", view.rank,
                  " came with ", collective_text(same->facts), ", dtype ", same->facts.dtype),
             {first->rank, view.rank}});
      }
      return;
    }
    if (waits(same)) waiting.push_back(view.rank);
  }
  if (age < options_.limit || !is_new(key)) return;
  const std::string where = text(list(waiting), waiting.size() == 1 ? " waits" : " wait", " for ",
                                 seconds_text(age), " in ", collective_text(held.facts));
  if (absent.empty() && !unseen.empty()) {
    out.push_back({text(where, "; what ", list(unseen), unseen.size() == 1 ? " does" : " do",
                        " cannot be seen from here, for want of telemetry"),
                   unseen});
    return;
  }
  if (absent.empty()) {
    out.push_back({text("all ranks have come and nothing moves: ", where,
                        "; look at the network, or at a card that stands still"),
                   waiting});
    return;
  }
  HangReport report;
  std::vector<std::string> words;
  for (const RankView* view : absent) {
    words.push_back(standing(*view, group, now));
    report.suspects.push_back(view->rank);
  }
  report.text = text(list(report.suspects), " did not come to ", collective_text(held.facts), ": ",
                     where, "; ", core::joined(words, "; "));
  out.push_back(std::move(report));
}

void HangWatch::look_at_process(const RankView& view, Time now, std::vector<HangReport>& out) {
  const bool stopped = !view.ended && (view.state == 'T' || view.state == 't');
  if (!stopped) {
    stopped_since_.erase(view.rank);
    return;
  }
  const auto since = stopped_since_.emplace(view.rank, now).first->second;
  if (now - since < options_.stopped_after) return;
  if (!is_new(text("stopped ", view.rank, "/", since.time_since_epoch().count()))) return;
  out.push_back({text("rank ", view.rank, " is stopped (SIGSTOP, or a debugger) for ",
                      seconds_text(now - since), "; kill -CONT lets it go on"),
                 {view.rank}});
}

}  // namespace yoke::launch
