#include "yoke/cluster/message.hpp"

#include "yoke/cluster/sha256.hpp"

namespace yoke::cluster {

std::string mac_of(std::string_view key, Direction direction, std::string_view body) {
  std::string whole = direction == Direction::request ? "request\n" : "answer\n";
  return hex(hmac_sha256(key, whole.append(body)));
}

bool is_authentic(std::string_view key, Direction direction, std::string_view body,
                  std::string_view mac) {
  return equal_in_constant_time(mac_of(key, direction, body), mac);
}

}  // namespace yoke::cluster
