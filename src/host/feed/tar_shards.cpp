#include "yoke/feed/tar_shards.hpp"

#include <algorithm>
#include <utility>

#include "class_names_file.hpp"
#include "directory.hpp"
#include "file_reader.hpp"
#include "fingerprint.hpp"
#include "image_suffix.hpp"
#include "shard_index.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {

namespace fs = std::filesystem;

struct TarShards::State {
  struct Place {
    std::size_t shard;
    const ShardIndex::Sample* sample;
  };

  [[nodiscard]] Place place(std::int64_t index) const {
    const auto next = std::ranges::upper_bound(first, index);
    const auto shard = static_cast<std::size_t>(next - first.begin()) - 1;
    return {shard, &indices[shard].samples[static_cast<std::size_t>(index - first[shard])]};
  }

  void check_labels() {
    std::int64_t most = -1;
    std::int64_t without = 0;
    for (const ShardIndex& index : indices) {
      for (const auto& sample : index.samples) {
        most = std::max(most, sample.label);
        without += sample.label < 0 ? 1 : 0;
      }
    }
    num_classes = most + 1;
    if (most < 0 || without == 0) return;
    throw Error(Code::invalid_argument,
                core::text("open ", files.front().path().string(), ": ", without, " of ", size,
                           " samples have no label (member .cls), the others have"),
                "give all of them a label, or none");
  }

  // Names count for more than labels: a split may lack the last class.
  void name_classes(const fs::path& folder) {
    if (num_classes == 0) return;
    class_names = class_names_in(folder, num_classes);
    num_classes = std::max(num_classes, static_cast<std::int64_t>(class_names.size()));
  }

  std::vector<FileReader> files;
  std::vector<ShardIndex> indices;
  std::vector<std::int64_t> first;  // sample of each shard
  std::int64_t size = 0;
  std::int64_t num_classes = 0;
  std::int64_t lost = 0;
  std::vector<std::string> class_names;
};

TarShards::TarShards(const std::vector<fs::path>& shards, TarShardsOptions options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  allow_open_files(shards.size());
  for (const fs::path& path : shards) {
    const FileReader& file = s.files.emplace_back(path);
    s.indices.push_back(options.cache ? cached_index(file, options.damaged)
                                      : index_shard(file, options.damaged));
    s.first.push_back(s.size);
    s.size += static_cast<std::int64_t>(s.indices.back().samples.size());
    s.lost += s.indices.back().lost;
  }
  if (s.size == 0) {
    throw Error(Code::invalid_argument,
                core::text("open ", shards.empty() ? "tar shards" : shards.front().string(),
                           ": no sample in ", shards.size(), " shards"));
  }
  s.check_labels();
  s.name_classes(shards.front().parent_path());
}

TarShards::~TarShards() = default;

std::vector<fs::path> TarShards::find(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return {path};
  std::vector<fs::path> shards;
  for (const std::string& name : list_directory(path).files) {
    if (lower_suffix(name) == "tar") shards.push_back(path / name);
  }
  if (shards.empty()) {
    throw Error(Code::not_found, core::text("open tar shards: no .tar file in ", path.string()));
  }
  return shards;
}

std::int64_t TarShards::size() const { return state_->size; }
std::int64_t TarShards::num_classes() const { return state_->num_classes; }
std::int64_t TarShards::lost_samples() const noexcept { return state_->lost; }
const std::vector<std::string>& TarShards::class_names() const { return state_->class_names; }

std::int64_t TarShards::label(std::int64_t index) const {
  return state_->place(index).sample->label;
}

std::span<const std::byte> TarShards::read(std::int64_t index,
                                           std::vector<std::byte>& memory) const {
  const auto [shard, sample] = state_->place(index);
  memory.resize(sample->size);
  const std::size_t count = state_->files[shard].read(sample->offset, memory);
  if (count < memory.size()) {
    throw Error(Code::corrupt_data,
                core::text("read ", count, " of ", sample->size, " bytes at byte ", sample->offset,
                           ": the shard has become shorter"),
                "start again: the index is then made anew");
  }
  return memory;
}

std::string TarShards::origin(std::int64_t index) const {
  const auto [shard, sample] = state_->place(index);
  return core::text(state_->files[shard].path().string(), ", key ",
                    state_->indices[shard].keys.substr(sample->key, sample->key_length));
}

std::string TarShards::kind() const {
  const std::size_t count = state_->files.size();
  return core::text(count, count == 1 ? " tar shard" : " tar shards");
}

std::uint64_t TarShards::fingerprint() const {
  Fingerprint print;
  for (const ShardIndex& index : state_->indices) {
    print.add(index.keys);
    for (const auto& sample : index.samples) {
      print.add(sample.offset);
      print.add(sample.size);
      print.add(static_cast<std::uint64_t>(sample.label));
    }
  }
  return print.value();
}

}  // namespace yoke::feed
