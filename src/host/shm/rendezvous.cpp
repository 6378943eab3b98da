#include "rendezvous.hpp"

#include <new>
#include <sstream>
#include <string>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

constexpr std::string_view kFine = "fine";

std::size_t control_bytes(const TeamOptions& options) {
  return sizeof(Control) + static_cast<std::size_t>(options.size) * sizeof(Mailbox) +
         options.staging_bytes;
}

Member member_at(const Process& process, std::shared_ptr<Segment> segment, int size) {
  std::byte* const base = segment->data();
  Member member;
  member.process = process;
  member.control = std::launder(reinterpret_cast<Control*>(base));
  member.mailboxes = std::launder(reinterpret_cast<Mailbox*>(base + sizeof(Control)));
  member.staging = base + sizeof(Control) + static_cast<std::size_t>(size) * sizeof(Mailbox);
  member.segment = std::move(segment);
  return member;
}

// The mailboxes' bytes are left alone: a page that no message touches costs no memory.
Member make_mine(const TeamOptions& options) {
  const Process process = this_process();
  std::shared_ptr<Segment> segment = Segment::create(control_bytes(options), /*populate=*/false);
  std::byte* const base = segment->data();
  new (base) Control;
  for (int receiver = 0; receiver < options.size; ++receiver) {
    new (base + sizeof(Control) + static_cast<std::size_t>(receiver) * sizeof(Mailbox)) Mailbox;
  }
  return member_at(process, std::move(segment), options.size);
}

// What a rank says of itself: fields by spaces, in this order.
struct Card {
  std::uint32_t version{kLayoutVersion};
  int rank{-1};
  int size{0};
  std::size_t staging_bytes{0};
  Process process{};
  SegmentAddress address{};
};

std::string written(const Card& card) {
  return core::text("yoke-shm ", card.version, ' ', card.rank, ' ', card.size, ' ',
                    card.staging_bytes, ' ', card.process.pid, ' ', card.process.start_time, ' ',
                    card.address.descriptor, ' ', card.address.bytes, ' ', card.address.nonce[0],
                    ' ', card.address.nonce[1]);
}

Card read_card(const std::string& words, const TeamOptions& options, int rank) {
  std::istringstream in(words);
  std::string mark;
  Card card;
  in >> mark >> card.version >> card.rank >> card.size >> card.staging_bytes >> card.process.pid >>
      card.process.start_time >> card.address.descriptor >> card.address.bytes >>
      card.address.nonce[0] >> card.address.nonce[1];
  card.address.pid = card.process.pid;
  const auto refuse = [&](const std::string& why) -> Card {
    throw Error(Code::unsupported, core::text("meet rank ", rank, ": ", why));
  };
  if (mark != "yoke-shm") return refuse(words);  // its own error
  if (card.version != kLayoutVersion) {
    return refuse(core::text("has layout version ", card.version, ", this one ", kLayoutVersion));
  }
  if (!in) return refuse(core::text("said \"", words, "\", which is cut short"));
  if (card.rank != rank || card.size != options.size ||
      card.staging_bytes != options.staging_bytes) {
    return refuse(core::text("says rank ", card.rank, " of ", card.size, " with ",
                             card.staging_bytes, " B of staging, not rank ", rank, " of ",
                             options.size, " with ", options.staging_bytes, " B"));
  }
  return card;
}

std::vector<std::string> exchanged(const Exchange& exchange, std::string mine, int size) {
  if (!exchange) return {std::move(mine)};
  std::vector<std::string> all = exchange(std::move(mine));
  if (all.size() != static_cast<std::size_t>(size)) {
    throw Error(Code::invalid_argument, core::text("meet the ranks: the exchange gave ", all.size(),
                                                   " texts for ", size, " ranks"));
  }
  return all;
}

std::vector<Member> find_all(const std::vector<std::string>& cards, const Member& mine,
                             const TeamOptions& options) {
  std::vector<Member> members;
  for (int rank = 0; rank < options.size; ++rank) {
    const Card card = read_card(cards[static_cast<std::size_t>(rank)], options, rank);
    members.push_back(
        rank == options.rank
            ? mine
            : member_at(card.process, Segment::open(card.address, false), options.size));
  }
  return members;
}

}  // namespace

std::vector<Member> meet(const Exchange& exchange, const TeamOptions& options) {
  // No error may leave before both exchanges are over: the others would wait in the second.
  Member mine;
  std::string card;
  try {
    mine = make_mine(options);
    card = written({.rank = options.rank,
                    .size = options.size,
                    .staging_bytes = options.staging_bytes,
                    .process = mine.process,
                    .address = mine.segment->address()});
  } catch (const Error& error) {
    card = error.what();
  }
  const std::vector<std::string> cards = exchanged(exchange, std::move(card), options.size);

  std::vector<Member> members;
  std::string verdict{kFine};
  try {
    members = find_all(cards, mine, options);
  } catch (const Error& error) {
    verdict = error.message();
  }
  const std::vector<std::string> verdicts = exchanged(exchange, std::move(verdict), options.size);
  if (mine.segment) mine.segment->close_descriptor();

  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    if (verdicts[rank] == kFine) continue;
    throw Error(
        Code::unsupported,
        core::text("share memory of ", options.size, " ranks: rank ", rank, ": ", verdicts[rank]),
        "ranks must be processes of one user in one host and process namespace; otherwise "
        "use another backend");
  }
  return members;
}

}  // namespace yoke::shm
