#include "pack_sink.hpp"

#include <lmdb.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tar_writer.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

std::string numbered(const char* format, std::int64_t number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, static_cast<long long>(number));
  return text.data();
}

std::string key_of(std::int64_t index) { return numbered("%010lld", index); }

class TarSink final : public PackSink {
 public:
  TarSink(fs::path folder, std::int64_t samples, std::int64_t shard_samples)
      : folder_(std::move(folder)), samples_(samples), shard_samples_(shard_samples) {
    std::error_code none;
    while (first_ < samples_ && fs::exists(path_of(first_ / shard_samples_), none)) {
      first_ = std::min(samples_, first_ + shard_samples_);
    }
  }

  [[nodiscard]] std::int64_t first() const override { return first_; }

  void add(std::int64_t index, std::int64_t label, std::span<const std::byte> jpeg) override {
    const std::int64_t shard = index / shard_samples_;
    if (shard != shard_) begin(shard);
    const std::string key = key_of(index);
    writer_->add(key + ".jpg", jpeg);
    if (label < 0) return;
    const std::string text = std::to_string(label);
    writer_->add(key + ".cls", std::as_bytes(std::span(text)));
  }

  void finish() override {
    if (writer_) writer_->finish();
    writer_.reset();
  }

 private:
  void begin(std::int64_t shard) {
    finish();
    writer_.emplace(path_of(shard));
    shard_ = shard;
  }

  [[nodiscard]] fs::path path_of(std::int64_t shard) const {
    return folder_ / numbered("pack-%05lld.tar", shard);
  }

  const fs::path folder_;
  const std::int64_t samples_;
  const std::int64_t shard_samples_;
  std::int64_t first_ = 0;
  std::int64_t shard_ = -1;
  std::optional<TarWriter> writer_;
};

class LmdbSink final : public PackSink {
 public:
  LmdbSink(fs::path folder, fs::path target)
      : folder_(std::move(folder)), target_(std::move(target)) {
    require(mdb_env_create(&environment_), "start");
    mdb_env_set_mapsize(environment_, kFirstMapBytes);
    require(mdb_env_open(environment_, folder_.c_str(), MDB_NOLOCK | MDB_NOTLS, 0644), "open it");
    MDB_txn* transaction = nullptr;
    require(mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin");
    require(mdb_dbi_open(transaction, nullptr, 0, &database_), "open its main table");
    find_first(transaction);
    require(mdb_txn_commit(transaction), "commit");
  }

  ~LmdbSink() override {
    if (environment_ != nullptr) mdb_env_close(environment_);
  }
  LmdbSink(const LmdbSink&) = delete;
  LmdbSink& operator=(const LmdbSink&) = delete;

  [[nodiscard]] std::int64_t first() const override { return first_; }

  void add(std::int64_t index, std::int64_t label, std::span<const std::byte> jpeg) override {
    const std::string key = key_of(index);
    if (label >= 0) waiting_.emplace_back(key + ".cls", std::to_string(label));
    waiting_.emplace_back(key + ".jpg",
                          std::string(reinterpret_cast<const char*>(jpeg.data()), jpeg.size()));
    if (waiting_.size() >= kCommitRecords) commit();
  }

  void finish() override {
    commit();
    require(mdb_env_sync(environment_, 1), "write it to the disk");
    mdb_env_close(std::exchange(environment_, nullptr));
    fs::rename(folder_, target_);
  }

 private:
  static constexpr std::size_t kFirstMapBytes = std::size_t{1} << 30;
  static constexpr std::size_t kCommitRecords = 1000;

  void require(int code, const char* doing) const {
    if (code == 0) return;
    throw Error(Code::io,
                core::text("write LMDB ", folder_.string(), ": ", doing, ": ", mdb_strerror(code)));
  }

  // Keys are numbers of one width, so the last in order is that of the last sample.
  void find_first(MDB_txn* transaction) {
    MDB_cursor* cursor = nullptr;
    require(mdb_cursor_open(transaction, database_, &cursor), "look for the last key");
    MDB_val key{};
    MDB_val value{};
    if (mdb_cursor_get(cursor, &key, &value, MDB_LAST) == 0) {
      const std::string_view text(static_cast<const char*>(key.mv_data), key.mv_size);
      first_ = core::parse_integer(text.substr(0, text.find('.'))).value_or(-1) + 1;
    }
    mdb_cursor_close(cursor);
  }

  void commit() {
    int code = try_commit();
    while (code == MDB_MAP_FULL) {
      MDB_envinfo info{};
      mdb_env_info(environment_, &info);
      require(mdb_env_set_mapsize(environment_, 2 * info.me_mapsize), "make room");
      code = try_commit();
    }
    require(code, "commit");
    waiting_.clear();
  }

  int try_commit() {
    MDB_txn* transaction = nullptr;
    int code = mdb_txn_begin(environment_, nullptr, 0, &transaction);
    if (code != 0) return code;
    for (auto& [key, value] : waiting_) {
      MDB_val k{key.size(), key.data()};
      MDB_val v{value.size(), value.data()};
      code = mdb_put(transaction, database_, &k, &v, MDB_APPEND);
      if (code != 0) break;
    }
    if (code == 0) return mdb_txn_commit(transaction);
    mdb_txn_abort(transaction);
    return code;
  }

  const fs::path folder_;
  const fs::path target_;
  MDB_env* environment_ = nullptr;
  MDB_dbi database_ = 0;
  std::int64_t first_ = 0;
  std::vector<std::pair<std::string, std::string>> waiting_;
};

}  // namespace

fs::path working_folder(const fs::path& target, PackFormat format) {
  return format == PackFormat::tar ? target : fs::path(target.string() + ".part");
}

std::unique_ptr<PackSink> make_tar_sink(const fs::path& folder, std::int64_t samples,
                                        std::int64_t shard_samples) {
  return std::make_unique<TarSink>(folder, samples, shard_samples);
}

std::unique_ptr<PackSink> make_lmdb_sink(const fs::path& folder, const fs::path& target) {
  return std::make_unique<LmdbSink>(folder, target);
}

}  // namespace yoke::feed
