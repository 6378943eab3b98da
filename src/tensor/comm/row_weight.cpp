#include "yoke/comm/row_weight.hpp"

namespace yoke::comm {
namespace {
thread_local double weight_now = -1;
}  // namespace

double row_weight() noexcept { return weight_now; }
void set_row_weight(double weight) noexcept { weight_now = weight; }

}  // namespace yoke::comm
