#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/json.hpp"

namespace yoke::profile {

/// An operation in a recording.
struct Event {
  std::string name{};
  bool on_device = false;      ///< a kernel or a copy; otherwise an operator on the host
  int device = 0;              ///< index of the card; on the host 0
  std::uint64_t stream = 0;    ///< of the card; on the host the thread
  std::uint64_t start_ns = 0;  ///< wall clock
  std::uint64_t end_ns = 0;
  std::uint64_t flops = 0;  ///< of convolutions and products, where it was asked for
};

struct Share {
  std::string name{};
  double ms = 0;        ///< a step; of all streams together
  double launches = 0;  ///< a step
};

/// Where the time of a step went. Times are milliseconds a step.
struct Summary {
  bool on_device = false;  ///< groups are the card's kernels; otherwise the host's operators
  int steps = 1;
  double step_ms = 0;                   ///< from the first operation's start to the last one's end
  double busy_ms = 0;                   ///< of it, something ran
  double gaps_ms = 0;                   ///< of it, nothing ran: the card waited for the host
  double exposed_communication_ms = 0;  ///< communication ran and nothing else did
  double communication_ms = 0;          ///< communication ran
  double launches = 0;
  std::vector<Share> groups{};   ///< convolution, norm, pointwise, ...; largest first
  std::vector<Share> kernels{};  ///< by name; largest first
};

/// What kind of work a kernel of that name does: "convolution, products", "norm", "pooling",
/// "pointwise, sums", "copies, casts", "optimizer, gradient lists", "communication", "other".
/// Source: kernel names of torch 2.6 to 2.11, cuDNN 9, cuBLAS, CUTLASS and of room kernels.
[[nodiscard]] std::string_view group_of(std::string_view kernel);

/// Of the first card's events, or the host's where there is none: an operator's time then is its
/// own, without those that it called. `steps`: how many were recorded, 1 or more.
/// Several cards in one process: the card with most events.
[[nodiscard]] Summary summarise(const std::vector<Event>& events, int steps);

/// Ten lines or so for people; `kernels`: how many of them are listed.
[[nodiscard]] std::vector<std::string> lines(const Summary& summary, std::size_t kernels = 3);

[[nodiscard]] core::Json to_json(const Summary& summary, std::size_t kernels = 25);

}  // namespace yoke::profile
