#include "yoke/data/named_dataset.hpp"

#include <exception>

#include <ATen/Functions.h>

#include "sample_text.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {
namespace {

template <class Act>
auto with_sample(const NamedDataset& dataset, const Request& request, std::int64_t index, Act act) {
  try {
    return act();
  } catch (const Error& error) {
    throw error.within(loading(dataset, index, request.worker));
  } catch (const std::exception& error) {
    throw Error(Code::invalid_argument,
                core::text(loading(dataset, index, request.worker), ": the data set threw"))
        .caused_by(error);
  }
}

std::string look(const NamedTensors& sample, std::size_t number) {
  if (number >= sample.size()) return "nothing";
  const auto& [name, tensor] = sample[number];
  return core::text(name, ' ', tensor.defined() ? comm::shape_text(tensor) : "undefined");
}

void require_alike(std::span<const NamedTensors> samples, std::size_t sample, std::size_t number) {
  const NamedTensors& first = samples[0];
  const NamedTensors& other = samples[sample];
  if (first.size() == other.size() && number < other.size() &&
      first[number].first == other[number].first && other[number].second.defined() &&
      first[number].second.sizes() == other[number].second.sizes() &&
      first[number].second.scalar_type() == other[number].second.scalar_type()) {
    return;
  }
  throw Error(Code::invalid_argument,
              core::text("stack samples: sample ", sample, " of the batch has ",
                         look(other, number), ", the first one ", look(first, number)),
              "bring all samples to one shape and type, or write collate()");
}

}  // namespace

NamedTensors stacked(std::span<const NamedTensors> samples) {
  NamedTensors batch;
  for (std::size_t number = 0; number < samples[0].size(); ++number) {
    std::vector<at::Tensor> tensors;
    for (std::size_t sample = 0; sample < samples.size(); ++sample) {
      require_alike(samples, sample, number);
      tensors.push_back(samples[sample][number].second);
    }
    batch.emplace_back(samples[0][number].first, at::stack(tensors));
  }
  return batch;
}

void NamedDataset::fill(const Request& /*request*/, const Rows& /*rows*/) const {
  throw Error(Code::internal, "a data set of named tensors makes whole batches, not rows");
}

NamedTensors NamedDataset::batch_of(const Request& request) const {
  std::vector<NamedTensors> samples;
  samples.reserve(request.indices.size());
  for (const std::int64_t index : request.indices) {
    feed::Draws random({.seed = request.seed, .epoch = request.epoch, .index = index});
    samples.push_back(with_sample(*this, request, index, [&] { return get(index, random); }));
  }
  return with_sample(*this, request, request.indices[0], [&] { return collate(samples); });
}

}  // namespace yoke::data
