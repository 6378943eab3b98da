#pragma once

#include <filesystem>
#include <functional>

#include "yoke/feed/image_rows.hpp"

namespace yoke::train {

// Called once for each image that could not be read.
using OnBadSample = std::function<void(const feed::BadSample&)>;

// Says the first bad samples on the console, and puts each as a JSON object on a line of its own
// into bad_samples.jsonl in the run folder, which ranks share; without a folder they are only said.
//
// Threads: any. Errors of the function: io.
[[nodiscard]] OnBadSample bad_sample_list(const std::filesystem::path& run_folder, int rank);

}  // namespace yoke::train
