#include "yoke/feed/lmdb_images.hpp"

#include <lmdb.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "class_names_file.hpp"
#include "file_reader.hpp"
#include "fingerprint.hpp"
#include "sample_groups.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// Key and value of each record, in order.
class Records {
 public:
  Records(MDB_txn* transaction, MDB_dbi database) {
    mdb_cursor_open(transaction, database, &cursor_);
  }
  ~Records() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  // LMDB's code: 0, MDB_NOTFOUND behind the last, or a fault.
  int next(MDB_val& key, MDB_val& value) {
    return cursor_ == nullptr ? ENOMEM : mdb_cursor_get(cursor_, &key, &value, MDB_NEXT);
  }

 private:
  MDB_cursor* cursor_ = nullptr;
};

}  // namespace

struct LmdbImages::State {
  explicit State(fs::path lmdb_path) : path(std::move(lmdb_path)) {}
  ~State() {
    if (transaction != nullptr) mdb_txn_abort(transaction);
    if (environment != nullptr) mdb_env_close(environment);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void require(int code, const char* doing) const {
    if (code == 0) return;
    const Code kind = code == ENOENT                     ? Code::not_found
                      : code == EACCES || code == ENOMEM ? Code::io
                                                         : Code::corrupt_data;
    throw Error(kind,
                core::text("open LMDB ", path.string(), ": ", doing, ": ", mdb_strerror(code)));
  }

  void open() {
    std::error_code none;
    const bool folder = fs::is_directory(path, none);
    const FileReader file(folder ? path / "data.mdb" : path);  // its errors name the path
    require(mdb_env_create(&environment), "start");
    // Values are drawn at random: the kernel's read-ahead would read their neighbours in vain.
    const unsigned flags = MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD |
                           (folder ? 0U : static_cast<unsigned>(MDB_NOSUBDIR));
    require(mdb_env_open(environment, path.c_str(), flags, 0644), "map it");
    check_length(file);
    require(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction), "begin to read");
    require(mdb_dbi_open(transaction, nullptr, 0, &database), "open its main table");
  }

  void check_length(const FileReader& file) const {
    MDB_envinfo info{};
    MDB_stat stat{};
    mdb_env_info(environment, &info);
    mdb_env_stat(environment, &stat);
    const std::uint64_t expected = (info.me_last_pgno + 1) * std::uint64_t{stat.ms_psize};
    if (file.size() >= expected) return;
    throw Error(Code::corrupt_data,
                core::text("open LMDB ", file.path().string(), ": expected ", expected,
                           " bytes, found ", file.size()),
                "the file was cut short: fetch it again");
  }

  // Whether keys have suffixes: the first key tells.
  [[nodiscard]] bool keys_have_suffixes() const {
    Records records(transaction, database);
    MDB_val key{};
    MDB_val value{};
    return records.next(key, value) == 0 && split_member_name(text_of(key)).has_value();
  }

  void list() {
    const bool joined = keys_have_suffixes();
    SampleGroups groups("LMDB " + path.string());
    Records records(transaction, database);
    MDB_val key{};
    MDB_val value{};
    int code = 0;
    while ((code = records.next(key, value)) == 0) {
      const auto place = reinterpret_cast<std::uintptr_t>(value.mv_data);
      if (joined) {
        groups.add(text_of(key), place, value.mv_size, text_of(value));
      } else {
        samples.push_back({std::string(text_of(key)), place, value.mv_size, -1});
      }
    }
    if (code != MDB_NOTFOUND) require(code, "list its keys");
    groups.finish();
    if (joined) samples = std::move(groups.samples());
  }

  void number_classes() {
    for (const SampleEntry& sample : samples) num_classes = std::max(num_classes, sample.label + 1);
    const auto without =
        std::ranges::count_if(samples, [](const SampleEntry& sample) { return sample.label < 0; });
    if (num_classes == 0 || without == 0) return;
    throw Error(Code::invalid_argument,
                core::text("open LMDB ", path.string(), ": ", without, " of ", samples.size(),
                           " samples have no label (key .cls), the others have"),
                "give all of them a label, or none");
  }

  // Names count for more than labels: a split may lack the last class.
  void name_classes() {
    std::error_code none;
    if (num_classes == 0 || !fs::is_directory(path, none)) return;
    class_names = class_names_in(path, num_classes);
    num_classes = std::max(num_classes, static_cast<std::int64_t>(class_names.size()));
  }

  [[nodiscard]] const SampleEntry& sample(std::int64_t index) const {
    return samples[static_cast<std::size_t>(index)];
  }

  const fs::path path;
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;  // one for all threads: values stay where they are
  MDB_dbi database = 0;
  std::vector<SampleEntry> samples;  // offset: the value's address
  std::int64_t num_classes = 0;
  std::vector<std::string> class_names;
};

LmdbImages::LmdbImages(const fs::path& path) : state_(std::make_unique<State>(path)) {
  state_->open();
  state_->list();
  if (state_->samples.empty()) {
    throw Error(Code::invalid_argument, core::text("open LMDB ", path.string(), ": it is empty"));
  }
  state_->number_classes();
  state_->name_classes();
}

LmdbImages::~LmdbImages() = default;

std::int64_t LmdbImages::size() const { return static_cast<std::int64_t>(state_->samples.size()); }
std::int64_t LmdbImages::num_classes() const { return state_->num_classes; }
std::int64_t LmdbImages::label(std::int64_t index) const { return state_->sample(index).label; }
const std::vector<std::string>& LmdbImages::class_names() const { return state_->class_names; }

std::span<const std::byte> LmdbImages::read(std::int64_t index,
                                            std::vector<std::byte>& /*memory*/) const {
  const SampleEntry& sample = state_->sample(index);
  return {reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(sample.offset)),
          sample.size};
}

std::string LmdbImages::origin(std::int64_t index) const {
  return core::text(state_->path.string(), ", key ", state_->sample(index).key);
}

std::uint64_t LmdbImages::fingerprint() const {
  Fingerprint print;
  for (const SampleEntry& sample : state_->samples) {
    print.add(sample.key);
    print.add(sample.size);
    print.add(static_cast<std::uint64_t>(sample.label));
  }
  return print.value();
}

}  // namespace yoke::feed
