#pragma once

#include <spng.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "../jpeg_library.hpp"
#include "yoke/feed/image.hpp"

/// Image files made in the test.
namespace yoke::feed {

using File = std::vector<std::byte>;

/// A picture with gradients, edges and noise, different for each seed.
inline Image picture(int width, int height, unsigned seed = 1) {
  Image image(width, height);
  std::uint32_t noise = seed * 2654435761U + 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      noise = noise * 1664525U + 1013904223U;
      std::uint8_t* pixel = image.row(y) + 4 * x;
      const unsigned edge = (x / 13 + y / 7 + static_cast<int>(seed)) % 2 == 0 ? 90 : 0;
      pixel[0] = static_cast<std::uint8_t>(
          (static_cast<unsigned>(x) * 150 / static_cast<unsigned>(width)) + edge);
      pixel[1] = static_cast<std::uint8_t>(
          (static_cast<unsigned>(y) * 150 / static_cast<unsigned>(height)) + (noise >> 27));
      pixel[2] = static_cast<std::uint8_t>(200 - edge + (noise >> 26) % 32);
      pixel[3] = 255;
    }
  }
  return image;
}

struct JpegShape {
  int quality = 90;
  int horizontal = 2;  ///< luma samples beside one chroma sample
  int vertical = 2;
  bool progressive = false;
  bool gray = false;
  bool cmyk = false;    ///< inverted, with Adobe's marker, as YCCK
  int orientation = 0;  ///< EXIF's; 0: no segment
};

inline File jpeg_file(const Image& image, const JpegShape& shape = {}) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width());
  jpeg.image_height = static_cast<JDIMENSION>(image.height());
  jpeg.input_components = shape.gray ? 1 : 4;
  jpeg.in_color_space = shape.gray ? JCS_GRAYSCALE : shape.cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  jpeg_set_defaults(&jpeg);
  if (shape.cmyk) jpeg_set_colorspace(&jpeg, JCS_YCCK);
  jpeg_set_quality(&jpeg, shape.quality, TRUE);
  if (!shape.gray) {
    jpeg.comp_info[0].h_samp_factor = shape.horizontal;
    jpeg.comp_info[0].v_samp_factor = shape.vertical;
  }
  if (shape.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (shape.orientation > 0) {
    const std::vector<unsigned char> exif{'E',  'x',
                                          'i',  'f',
                                          0,    0,
                                          'M',  'M',
                                          0,    42,
                                          0,    0,
                                          0,    8,
                                          0,    1,
                                          0x01, 0x12,
                                          0,    3,
                                          0,    0,
                                          0,    1,
                                          0,    static_cast<unsigned char>(shape.orientation),
                                          0,    0,
                                          0,    0,
                                          0,    0};
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  }
  std::vector<std::uint8_t> gray(static_cast<std::size_t>(image.width()));
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) gray[static_cast<std::size_t>(x)] = image.row(y)[4 * x];
    JSAMPROW row = shape.gray ? gray.data() : const_cast<std::uint8_t*>(image.row(y));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  const auto* bytes = reinterpret_cast<const std::byte*>(memory);
  File file(bytes, bytes + size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return file;
}

struct PngShape {
  spng_color_type color = SPNG_COLOR_TYPE_TRUECOLOR;
  int bits = 8;
  bool interlaced = false;
};

/// `rows` are the PNG's own bytes, row after row, in the machine's byte order.
inline File png_file(int width, int height, const PngShape& shape, std::span<const std::byte> rows,
                     const spng_plte* palette = nullptr, const spng_trns* transparency = nullptr) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr head{static_cast<std::uint32_t>(width),
                 static_cast<std::uint32_t>(height),
                 static_cast<std::uint8_t>(shape.bits),
                 static_cast<std::uint8_t>(shape.color),
                 0,
                 0,
                 static_cast<std::uint8_t>(shape.interlaced ? 1 : 0)};
  spng_set_ihdr(context, &head);
  spng_plte own_palette = palette != nullptr ? *palette : spng_plte{};
  if (palette != nullptr) spng_set_plte(context, &own_palette);
  spng_trns own_transparency = transparency != nullptr ? *transparency : spng_trns{};
  if (transparency != nullptr) spng_set_trns(context, &own_transparency);
  spng_encode_image(context, rows.data(), rows.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  std::size_t size = 0;
  int code = 0;
  void* memory = spng_get_png_buffer(context, &size, &code);
  const auto* bytes = static_cast<const std::byte*>(memory);
  File file = memory != nullptr ? File(bytes, bytes + size) : File{};
  std::free(memory);
  spng_ctx_free(context);
  return file;
}

inline void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// Bytes in the order of reading: what two images that look alike have in common.
inline std::vector<std::uint8_t> rgb(const Image& image, Region region = {}) {
  if (region.width == 0) region = image.whole();
  std::vector<std::uint8_t> bytes;
  for (int y = region.top; y < region.bottom(); ++y) {
    for (int x = region.left; x < region.right(); ++x) {
      for (int channel = 0; channel < 3; ++channel) bytes.push_back(image.row(y)[4 * x + channel]);
    }
  }
  return bytes;
}

}  // namespace yoke::feed
