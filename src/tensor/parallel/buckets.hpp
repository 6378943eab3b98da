#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::comm {
class Group;
class Work;
}  // namespace yoke::comm

namespace yoke::parallel {

/// One flat piece of gradient memory that is averaged as a whole.
struct Bucket {
  std::vector<std::size_t> parameters;  ///< indices, in the order of their places
  at::Tensor flat;  ///< [elements + mask] of the parameters' dtype, from Group::empty_bucket
  std::vector<at::Tensor>
      views;        ///< per parameter, with its shape and strides, into flat; usable as .grad
  at::Tensor mask;  ///< last bucket only: [all parameters], 1 where a parameter was used
  bool deferred =
      false;  ///< holds a parameter whose gradient comes in several parts: sent at the end
  // Of the backward that runs:
  std::size_t missing = 0;  ///< parameters without a gradient so far
  bool sent = false;
  std::unique_ptr<comm::Work> work;
};

struct BucketLimits {
  std::size_t first_bytes;
  std::size_t bytes;
};

/// Lays `order` out in buckets: each of one dtype and device, closed once it holds `bytes` (the
/// first: `first_bytes`), in the order in which they close. The last one carries the mask.
/// Collective through Group::empty_bucket.
[[nodiscard]] std::vector<Bucket> make_buckets(comm::Group& group,
                                               const std::vector<at::Tensor>& parameters,
                                               const std::vector<std::size_t>& order,
                                               BucketLimits limits);

}  // namespace yoke::parallel
