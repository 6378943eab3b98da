#include "yoke/data/idx_images.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "fingerprint.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& source) {
  return source == feed::kFashionMnist ? std::filesystem::path(feed::kFashionMnistFolder) : source;
}

}  // namespace

IdxImages::IdxImages(const std::filesystem::path& source, Split split,
                     const IdxImagesOptions& options)
    : files_(std::make_shared<const feed::LabelledImages>(
          feed::LabelledImages::find(folder_of(source), split, options.num_classes))),
      normalise_(options.normalise.value_or(feed::default_normalise(source))) {
  feed::to_floats({}, normalise_, {});  // refuses a deviation of 0 here, not in the first batch
}

SampleLayout IdxImages::layout() const {
  const std::vector<std::int64_t>& dims = files_->images().dims();
  std::vector<std::int64_t> sizes(dims.begin() + 1, dims.end());
  if (sizes.size() == 2) sizes.insert(sizes.begin(), 1);  // one channel, not written in the file
  return {.input_sizes = std::move(sizes)};
}

void IdxImages::fill(const Request& request, const Rows& rows) const {
  const feed::IdxFile& images = files_->images();
  const auto per_image = static_cast<std::size_t>(rows.input.numel()) / request.indices.size();
  auto* pixels = rows.input.mutable_data_ptr<float>();
  auto* labels = rows.target.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : request.indices) {
    feed::to_floats(images.item(index), normalise_, {pixels, per_image});
    *labels++ = files_->label(index);
    pixels += per_image;
  }
}

std::string IdxImages::origin(std::int64_t /*index*/) const {
  return files_->images().path().string();
}

std::uint64_t IdxImages::fingerprint() const {
  std::uint64_t print = fingerprint_of(files_->images().dims());
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int64_t label = files_->label(i);
    print = fingerprint_of({&label, 1}, print);
  }
  return print;
}

}  // namespace yoke::data
