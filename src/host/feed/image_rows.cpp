#include "yoke/feed/image_rows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 3> kPolicies{"raise", "skip", "substitute"};
constexpr std::size_t kMostKept = 64 << 20;  // of a thread's memory between two images
constexpr int kSubstitutes = 10;
constexpr std::uint64_t kSubstituteStream = 0x5375627374697475U;  // apart from augmentation's

struct Workspace {
  explicit Workspace(const DecodeOptions& options) : transform(options) {}

  [[nodiscard]] std::size_t memory() const noexcept {
    return file.capacity() + transform.decoded.memory() + transform.made.memory() +
           transform.spare.memory();
  }

  TransformWorkspace transform;
  std::vector<std::byte> file;
};

// Whether the fault is the image's, not the program's.
bool is_bad_sample(const Error& error) {
  return error.code() == Code::corrupt_data || error.code() == Code::unsupported ||
         error.code() == Code::io || error.code() == Code::not_found;
}

}  // namespace

BadSamples bad_samples_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kPolicies, name);
  if (found != kPolicies.end()) return static_cast<BadSamples>(found - kPolicies.begin());
  throw Error(Code::invalid_argument,
              core::text("policy for bad samples \"", name, "\" is not known"),
              core::unknown_name_hint(name, {kPolicies.begin(), kPolicies.end()}));
}

struct ImageRows::State {
  State(std::shared_ptr<const EncodedImages> encoded, Transforms transform_steps,
        ImageRowsOptions row_options)
      : images(std::move(encoded)),
        transforms(std::move(transform_steps)),
        options(std::move(row_options)) {}

  std::unique_ptr<Workspace> take_workspace() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Workspace>(options.decode);
    auto workspace = std::move(idle.back());
    idle.pop_back();
    return workspace;
  }

  // One that a huge image has blown up is not kept: it would stay so for the rest of the run.
  void give_back(std::unique_ptr<Workspace> workspace) {
    if (workspace->memory() > kMostKept) return;
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(workspace));
  }

  // Why it could not be done, where the image is to blame.
  std::optional<Error> try_fill(const SampleKey& key, std::int64_t index, Workspace& workspace,
                                std::span<std::byte> row) {
    try {
      const auto begin = Clock::now();
      const auto file = images->read(index, workspace.file);
      const auto read = Clock::now();
      read_time += (read - begin).count();
      Draws draws(key);
      transforms.apply(file, draws, workspace.transform, row);
      transform_time += (Clock::now() - read).count();
    } catch (const Error& error) {
      if (!is_bad_sample(error)) throw with_origin(error, index);
      return error;
    }
    return std::nullopt;
  }

  [[nodiscard]] Error with_origin(const Error& error, std::int64_t index) const {
    return error.within(core::text("sample ", index, " (", images->origin(index), ")"));
  }

  void note(const Error& error, std::int64_t index) {
    const std::lock_guard lock(mutex);
    if (!bad.try_emplace(index, error.message()).second) return;
    if (options.on_bad) options.on_bad({index, images->origin(index), error.message()});
    if (static_cast<std::int64_t>(bad.size()) <= options.most_bad) return;
    throw Error(Code::corrupt_data,
                core::text(bad.size(), " of ", images->size(), " images are bad, and ",
                           options.most_bad, " are allowed; the last one: sample ", index, " (",
                           images->origin(index), "): ", error.message()),
                "yoke data verify lists them all; raise most_bad if so many are to be expected");
  }

  RowResult substitute(const SampleKey& key, const Error& first, Workspace& workspace,
                       std::span<std::byte> row) {
    SampleKey other = key;
    other.seed ^= kSubstituteStream;
    Draws choices(other);
    for (int i = 0; i < kSubstitutes; ++i) {
      const auto index =
          static_cast<std::int64_t>(choices.below(static_cast<std::uint64_t>(images->size())));
      const auto error = try_fill(key, index, workspace, row);
      if (!error) return {index, images->label(index), true};
      note(*error, index);
    }
    throw with_origin(first, key.index)
        .within(core::text(kSubstitutes, " substitutes are bad as well"));
  }

  RowResult fill(const SampleKey& key, Workspace& workspace, std::span<std::byte> row) {
    const auto error = try_fill(key, key.index, workspace, row);
    if (!error) return {key.index, images->label(key.index), true};
    if (options.bad_samples == BadSamples::raise) throw with_origin(*error, key.index);
    note(*error, key.index);
    if (options.bad_samples == BadSamples::substitute) {
      return substitute(key, *error, workspace, row);
    }
    std::ranges::fill(row, std::byte{0});
    return {key.index, images->label(key.index), false};
  }

  const std::shared_ptr<const EncodedImages> images;
  const Transforms transforms;
  const ImageRowsOptions options;

  std::mutex mutex;
  std::vector<std::unique_ptr<Workspace>> idle;
  std::map<std::int64_t, std::string> bad;  // reason by index
  std::atomic<Clock::rep> read_time{0};     // of Clock
  std::atomic<Clock::rep> transform_time{0};
};

ImageRows::ImageRows(std::shared_ptr<const EncodedImages> images, Transforms transforms,
                     ImageRowsOptions options)
    : state_(
          std::make_unique<State>(std::move(images), std::move(transforms), std::move(options))) {}

ImageRows::~ImageRows() = default;

const EncodedImages& ImageRows::images() const noexcept { return *state_->images; }
const Transforms& ImageRows::transforms() const noexcept { return state_->transforms; }

RowResult ImageRows::fill(const SampleKey& key, std::span<std::byte> row) const {
  State& s = *state_;
  auto workspace = s.take_workspace();
  const RowResult result = s.fill(key, *workspace, row);
  s.give_back(std::move(workspace));
  return result;
}

RowTimes ImageRows::times() const {
  return {.read = Clock::duration(state_->read_time.load()),
          .transform = Clock::duration(state_->transform_time.load())};
}

std::vector<BadSample> ImageRows::quarantine() const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  std::vector<BadSample> list;
  for (const auto& [index, reason] : s.bad) {
    list.push_back({index, s.images->origin(index), reason});
  }
  return list;
}

}  // namespace yoke::feed
