#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "peer.hpp"
#include "segment.hpp"
#include "yoke/shm/dtype.hpp"
#include "yoke/shm/reduction.hpp"

namespace yoke::shm {

/// Raised with every change of what lies in a control segment.
inline constexpr std::uint32_t kLayoutVersion = 1;

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kSlots = 128;         ///< operations in flight
inline constexpr std::size_t kShapeBytes = 64;     ///< of a shape's text; what is longer is cut
inline constexpr std::size_t kReasonBytes = 1000;  ///< of the text why a rank left
inline constexpr std::size_t kMailBytes = 64 << 10;

enum class Operation : std::uint32_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  allocate,
};

/// What a rank says about one operation. Everything but the contribution is the same on all ranks.
struct Call {
  Operation operation{Operation::barrier};
  Dtype dtype{Dtype::uint8};
  Reduction reduction{Reduction::sum};
  std::int32_t root{-1};         ///< -1: the operation has none
  std::uint64_t count{0};        ///< elements of the whole call, of which this may be one part
  std::uint64_t region{0};       ///< number of the allocation that it works in; 0 is staging
  std::uint64_t offset{0};       ///< bytes into that
  std::uint64_t part{0};         ///< elements of this part
  std::uint64_t shape_hash{0};   ///< of the whole text
  std::uint32_t shape_bytes{0};  ///< of the text as kept here
  std::array<char, kShapeBytes> shape{};
  Contribution contribution{};
};

/// A byte stream from one rank to one other, in the sender's segment.
struct Mailbox {
  alignas(kCacheLine) std::atomic<std::uint64_t> written{0};  ///< by the sender
  alignas(kCacheLine) std::atomic<std::uint64_t> taken{0};    ///< by the receiver
  alignas(kCacheLine) std::array<std::byte, kMailBytes> bytes;
};

/// Whether a rank is in its team; `leaving` while it writes down why not.
enum class Presence : std::uint32_t { here, leaving, gone };

/// The start of each rank's control segment; mailboxes for each rank and staging follow.
/// Written by its owner, except `bell` and Mailbox::taken.
struct Control {
  alignas(kCacheLine) std::atomic<std::uint64_t> arrived{
      0};  ///< last operation whose call is posted
  alignas(kCacheLine) std::atomic<std::uint64_t> finished{
      0};                                                  ///< last whose work by this rank is done
  alignas(kCacheLine) std::atomic<std::uint32_t> bell{0};  ///< futex this rank sleeps on
  std::atomic<std::uint32_t> asleep{0};
  alignas(kCacheLine) std::atomic<Presence> presence{Presence::here};
  std::uint32_t follows{0};  ///< 1: left because another rank was lost; from here valid once gone
  std::uint32_t reason_bytes{0};
  std::array<char, kReasonBytes> reason{};
  alignas(kCacheLine) std::array<Call, kSlots> calls{};  ///< of operation s in s % kSlots
};

// A change of either is a new kLayoutVersion.
static_assert(sizeof(Control) == 19648 && sizeof(Mailbox) == 65664);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<Presence>::is_always_lock_free);

/// One rank as another sees it.
struct Member {
  Process process;
  std::shared_ptr<Segment> segment;
  Control* control{nullptr};
  Mailbox* mailboxes{nullptr};  ///< [ranks] what this rank sends, by receiver
  std::byte* staging{nullptr};
};

/// Where each rank's bytes of one allocation lie.
struct Region {
  std::uint64_t number{0};    ///< of the allocation; 0 is staging
  const void* team{nullptr};  ///< whose ranks it belongs to
  std::size_t bytes{0};
  int rank{0};
  std::vector<std::byte*> base;                    // [ranks]
  std::vector<std::shared_ptr<Segment>> segments;  // [ranks]
};

}  // namespace yoke::shm
