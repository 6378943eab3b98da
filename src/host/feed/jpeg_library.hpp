#pragma once

#include <csetjmp>
// clang-format off: jpeglib.h uses what these declare
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace yoke::feed {

/// libjpeg's error handler that jumps back to a place of ours in place of ending the process, and
/// counts warnings in place of printing them.
///
/// Note [Jumps]: between the setjmp of guarded() and the library's call lie only functions without
/// objects that have destructors, so that a jump leaves nothing behind.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: the library hands back its address
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];

  JpegErrors();
  JpegErrors(const JpegErrors&) = delete;
  JpegErrors& operator=(const JpegErrors&) = delete;

  /// Runs `work`; false if the library failed in it: `text` then says why.
  template <class Work>
  [[nodiscard]] bool guarded(const Work& work) {
    if (setjmp(jump) != 0) return false;  // NOLINT: the library's only way out of an error
    work();
    return true;
  }
};

}  // namespace yoke::feed
