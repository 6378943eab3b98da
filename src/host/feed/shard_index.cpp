#include "shard_index.hpp"

#include <cstring>
#include <span>
#include <utility>

#include "fingerprint.hpp"
#include "index_cache.hpp"
#include "sample_groups.hpp"
#include "tar_reader.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr std::uint64_t kMark = 0x31584449454B4F59U;  // changes with the layout
constexpr std::size_t kMostLabelBytes = 32;

// The words before the samples: docs/feed.md has the layout.
struct Head {
  std::uint64_t mark = kMark;
  std::uint64_t shard_size = 0;
  std::int64_t shard_changed = 0;
  std::uint64_t samples = 0;
  std::uint64_t key_bytes = 0;
  std::int64_t lost = 0;
};

template <class T>
void append(std::string& bytes, const T* values, std::size_t count) {
  if (count > 0) bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

std::uint64_t sum_of(std::string_view bytes) {
  Fingerprint print;
  print.add(bytes);
  return print.value();
}

bool keys_are_inside(const ShardIndex& index, std::uint64_t shard_size) {
  for (const auto& sample : index.samples) {
    if (sample.key > index.keys.size() || sample.key_length > index.keys.size() - sample.key ||
        sample.offset > shard_size || sample.size > shard_size - sample.offset) {
      return false;
    }
  }
  return true;
}

std::string label_bytes(const FileReader& shard, const TarMember& member) {
  if (!SampleGroups::is_label(member.name)) return {};
  std::string text(std::min<std::uint64_t>(member.size, kMostLabelBytes), '\0');
  text.resize(shard.read(member.offset, std::as_writable_bytes(std::span(text))));
  return text;
}

void walk(const FileReader& shard, TarReader& reader, SampleGroups& groups) {
  while (const auto member = reader.next()) {
    groups.add(member->name, member->offset, member->size, label_bytes(shard, *member));
  }
  groups.finish();
}

}  // namespace

ShardIndex index_shard(const FileReader& shard, DamagedShards damaged) {
  SampleGroups groups(shard.path().string());
  TarReader reader(
      shard.path().string(), shard.size(),
      [&](std::uint64_t offset, std::span<std::byte> out) { return shard.read(offset, out); });
  ShardIndex index;
  try {
    walk(shard, reader, groups);
  } catch (const Error& error) {
    if (damaged == DamagedShards::refuse || error.code() != Code::corrupt_data) throw;
    index.lost = groups.finish_damaged(reader.cut_member()) ? 1 : 0;
    core::say(core::Level::warning,
              core::text(error.message(), "; ", groups.samples().size(),
                         " whole samples are kept, ", index.lost, " begun ones lost"));
  }
  for (const SampleEntry& sample : groups.samples()) {
    index.samples.push_back(
        {sample.offset, sample.size, sample.label, index.keys.size(), sample.key.size()});
    index.keys += sample.key;
  }
  return index;
}

std::string to_bytes(const ShardIndex& index, const FileReader& shard) {
  const Head head{.shard_size = shard.size(),
                  .shard_changed = shard.changed(),
                  .samples = index.samples.size(),
                  .key_bytes = index.keys.size(),
                  .lost = index.lost};
  std::string bytes;
  append(bytes, &head, 1);
  append(bytes, index.samples.data(), index.samples.size());
  bytes += index.keys;
  const std::uint64_t sum = sum_of(bytes);
  append(bytes, &sum, 1);
  return bytes;
}

std::optional<ShardIndex> from_bytes(std::string_view bytes, const FileReader& shard) {
  Head head;
  if (bytes.size() < sizeof(head) + sizeof(std::uint64_t)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const std::uint64_t left = bytes.size() - sizeof(head) - sizeof(std::uint64_t);
  if (head.mark != kMark || head.shard_size != shard.size() ||
      head.shard_changed != shard.changed() || head.key_bytes > left ||
      (left - head.key_bytes) % sizeof(ShardIndex::Sample) != 0 ||
      (left - head.key_bytes) / sizeof(ShardIndex::Sample) != head.samples) {
    return std::nullopt;
  }
  const std::uint64_t sum = sum_of(bytes.substr(0, bytes.size() - sizeof(sum)));
  if (std::memcmp(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum)) != 0) {
    return std::nullopt;
  }
  ShardIndex index;
  index.lost = head.lost;
  index.samples.resize(head.samples);
  const std::size_t samples_bytes = head.samples * sizeof(ShardIndex::Sample);
  if (samples_bytes > 0) {
    std::memcpy(index.samples.data(), bytes.data() + sizeof(head), samples_bytes);
  }
  index.keys = bytes.substr(sizeof(head) + samples_bytes, head.key_bytes);
  if (!keys_are_inside(index, shard.size())) return std::nullopt;
  return index;
}

ShardIndex cached_index(const FileReader& shard, DamagedShards damaged) {
  const std::string_view variant = damaged == DamagedShards::refuse ? "tar" : "damaged tar";
  if (const auto bytes = load_index(shard.path(), variant)) {
    if (auto index = from_bytes(*bytes, shard)) return std::move(*index);
  }
  ShardIndex index = index_shard(shard, damaged);
  keep_index(shard.path(), variant, to_bytes(index, shard));
  return index;
}

}  // namespace yoke::feed
