#include "yoke/data/dataset.hpp"

#include <exception>

#include "sample_text.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {
namespace {

std::string look(const at::Tensor& tensor) {
  return tensor.defined() ? comm::shape_text(tensor) : "an undefined tensor";
}

Sample get_sample(const MapDataset& dataset, const Request& request, std::int64_t index) {
  feed::Draws random({.seed = request.seed, .epoch = request.epoch, .index = index});
  try {
    return dataset.get(index, random);
  } catch (const Error& error) {
    throw error.within(loading(dataset, index, request.worker));
  } catch (const std::exception& error) {
    throw Error(Code::invalid_argument,
                core::text(loading(dataset, index, request.worker), ": the data set threw"))
        .caused_by(error);
  }
}

// `row` looks as sample 0 does: the loader made it so.
void put(const at::Tensor& value, const at::Tensor& row, const char* what,
         const std::string& loading_it) {
  const bool fits =
      value.defined() && value.sizes() == row.sizes() && value.scalar_type() == row.scalar_type();
  if (!fits) {
    throw Error(Code::invalid_argument,
                core::text(loading_it, ": its ", what, " is ", look(value),
                           ", but that of sample 0", " is ", look(row)),
                "bring all samples to one shape and type in get()");
  }
  row.copy_(value);
}

}  // namespace

std::string loading(const Dataset& dataset, std::int64_t index, int worker) {
  std::vector<std::string> details;
  if (std::string origin = dataset.origin(index); !origin.empty()) details.push_back(origin);
  if (worker >= 0) details.push_back(core::text("worker ", worker));
  const std::string sample = core::text("load sample ", index);
  return details.empty() ? sample : core::text(sample, " (", core::joined(details), ")");
}

SampleLayout MapDataset::layout() const {
  const Sample first = get_sample(*this, {}, 0);
  if (!first.input.defined() || !first.target.defined()) {
    throw Error(Code::invalid_argument,
                core::text(loading(*this, 0, -1), ": get() gave an undefined tensor"));
  }
  return {.input_sizes = first.input.sizes().vec(),
          .input_dtype = first.input.scalar_type(),
          .target_sizes = first.target.sizes().vec(),
          .target_dtype = first.target.scalar_type()};
}

void MapDataset::fill(const Request& request, const Rows& rows) const {
  for (std::size_t i = 0; i < request.indices.size(); ++i) {
    const std::int64_t index = request.indices[i];
    const auto row = static_cast<std::int64_t>(i);
    const Sample sample = get_sample(*this, request, index);
    const std::string loading_it = loading(*this, index, request.worker);
    put(sample.input, rows.input.select(0, row), "input", loading_it);
    put(sample.target, rows.target.select(0, row), "target", loading_it);
  }
}

}  // namespace yoke::data
