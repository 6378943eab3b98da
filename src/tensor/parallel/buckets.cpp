#include "buckets.hpp"

#include <map>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>

#include "yoke/comm/group.hpp"

namespace yoke::parallel {
namespace {

// A view for .grad: made by set_() and not by narrow(), so that it is no view to autograd and
// zero_grad's detach_() does not throw. Keeps the parameter's strides where its memory has no
// holes, as autograd expects of gradients.
at::Tensor gradient_view(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter) {
  const bool keep_strides = parameter.is_non_overlapping_and_dense();
  at::Tensor view = at::empty({0}, flat.options());
  if (keep_strides) {
    view.set_(flat.storage(), flat.storage_offset() + offset, parameter.sizes(),
              parameter.strides());
  } else {
    view.set_(flat.storage(), flat.storage_offset() + offset, parameter.sizes());
  }
  return view;
}

std::vector<std::vector<std::size_t>> assign(const std::vector<at::Tensor>& parameters,
                                             const std::vector<std::size_t>& order,
                                             BucketLimits limits) {
  struct Open {
    std::vector<std::size_t> members;
    std::size_t bytes = 0;
  };
  std::map<std::pair<std::string, at::ScalarType>, Open> open;
  std::vector<std::vector<std::size_t>> closed;
  for (const std::size_t index : order) {
    const at::Tensor& parameter = parameters[index];
    Open& bucket = open[{parameter.device().str(), parameter.scalar_type()}];
    bucket.members.push_back(index);
    bucket.bytes += parameter.nbytes();
    if (bucket.bytes >= (closed.empty() ? limits.first_bytes : limits.bytes)) {
      closed.push_back(std::exchange(bucket, {}).members);
    }
  }
  for (auto& [key, bucket] : open) {
    if (!bucket.members.empty()) closed.push_back(std::move(bucket.members));
  }
  return closed;
}

}  // namespace

std::vector<Bucket> make_buckets(comm::Group& group, const std::vector<at::Tensor>& parameters,
                                 const std::vector<std::size_t>& order, BucketLimits limits) {
  const at::NoGradGuard no_grad;
  std::vector<Bucket> buckets;
  const auto groups = assign(parameters, order, limits);
  for (const std::vector<std::size_t>& members : groups) {
    const bool last = buckets.size() + 1 == groups.size();
    const auto mask_numel = last ? static_cast<std::int64_t>(parameters.size()) : 0;
    std::int64_t numel = 0;
    for (const std::size_t index : members) numel += parameters[index].numel();
    Bucket bucket;
    bucket.parameters = members;
    bucket.flat = group.empty_bucket(numel + mask_numel,
                                     parameters[members.front()].options().requires_grad(false));
    std::int64_t offset = 0;
    for (const std::size_t index : members) {
      bucket.views.push_back(gradient_view(bucket.flat, offset, parameters[index]));
      offset += parameters[index].numel();
    }
    if (last) bucket.mask = bucket.flat.narrow(0, numel, mask_numel);
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace yoke::parallel
