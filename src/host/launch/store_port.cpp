#include "store_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::text;

std::string hint_for(int reason) {
  if (reason == EADDRINUSE)
    return "give another --master-port, or none for a free one; ss -ltnp shows who has it";
  if (reason == EACCES)
    return "ports below 1024 need root: give a higher --master-port, or none for a free one";
  return "check that the loopback interface is up";
}

[[noreturn]] void refuse(int port, int reason) {
  const std::string what = port == 0 ? "a free port" : text("port ", port);
  throw Error(Code::io,
              text("bind ", what, " of 127.0.0.1 for the ranks to meet: ",
                   reason == EADDRINUSE ? "another program listens there"
                                        : std::generic_category().message(reason)),
              hint_for(reason));
}

}  // namespace

StorePort reserve_store_port(std::optional<int> wanted, bool listen) {
  StorePort store{Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), wanted.value_or(0)};
  if (!store.socket.is_open()) refuse(store.port, errno);
  const int on = 1;
  ::setsockopt(store.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(store.port));
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(store.socket.get(), raw, size) != 0) refuse(store.port, errno);
  if (::getsockname(store.socket.get(), raw, &size) != 0) refuse(store.port, errno);
  store.port = ntohs(address.sin_port);
  if (listen && ::listen(store.socket.get(), SOMAXCONN) != 0) refuse(store.port, errno);
  return store;
}

}  // namespace yoke::launch
