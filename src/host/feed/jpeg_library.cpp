#include "jpeg_library.hpp"

namespace yoke::feed {
namespace {

[[noreturn]] void jump_out(j_common_ptr common) {
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);
  errors->manager.format_message(common, errors->text);
  std::longjmp(errors->jump, 1);
}

void count_warning(j_common_ptr common, int level) {
  if (level < 0) ++common->err->num_warnings;
}

void drop_message(j_common_ptr /*common*/) {}

}  // namespace

JpegErrors::JpegErrors() : manager{}, jump{}, text{} {
  jpeg_std_error(&manager);
  manager.error_exit = jump_out;
  manager.emit_message = count_warning;
  manager.output_message = drop_message;
}

}  // namespace yoke::feed
