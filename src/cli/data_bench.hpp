#pragma once

#include <memory>

#include "yoke/core/json.hpp"
#include "yoke/feed/encoded_images.hpp"

namespace yoke::cli {

struct DataBenchOptions {
  double seconds = 3;    ///< of each stage
  unsigned workers = 1;  ///< threads of the last measurement
};

/// Images per second of each stage of loading for training, on one core: reading, decoding whole,
/// and the row of RandomResizedCrop(224) and a flip; then of rows on all workers. `limit` names the
/// stage that takes most of a row's time.
[[nodiscard]] core::Json bench_data(const std::shared_ptr<const feed::EncodedImages>& images,
                                    const DataBenchOptions& options);

}  // namespace yoke::cli
