#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "yoke/feed/decode.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/image_rows.hpp"

namespace yoke::feed {

struct SurveyOptions {
  bool decode = false;   ///< every image whole; else its head alone
  unsigned workers = 1;  ///< threads
  DecodeOptions decode_options{};
  std::function<void(std::int64_t done)> progress{};  ///< from the caller's thread
};

/// What images there are.
struct Survey {
  struct Sides {
    int least = 0;
    int median = 0;
    int most = 0;
  };

  std::int64_t samples = 0;
  std::array<std::int64_t, 3> by_format{};  ///< by ImageFormat
  std::int64_t bytes = 0;
  Sides width{};
  Sides height{};
  std::int64_t progressive = 0;
  std::int64_t cmyk = 0;
  std::int64_t gray = 0;
  std::int64_t turned = 0;                ///< with an EXIF orientation other than 1
  std::int64_t other_suffix = 0;          ///< whose first bytes say something else than the name
  std::int64_t with_warnings = 0;         ///< decoded, but the codec passed over faults
  std::vector<BadSample> broken{};        ///< by index
  std::vector<std::int64_t> per_class{};  ///< samples by label
};

/// Looks at every image. Errors: none for a broken image: it is in the list.
[[nodiscard]] Survey survey(const EncodedImages& images, const SurveyOptions& options = {});

}  // namespace yoke::feed
