#include "yoke/launch/store_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <random>
#include <string>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::text;

constexpr int kLowestPort = 10'000;
constexpr int kTries = 64;

std::string hint_for(int reason) {
  if (reason == EADDRINUSE)
    return "give another --master-port, or none for a free one; ss -ltnp shows who has it";
  if (reason == EACCES)
    return "ports below 1024 need root: give a higher --master-port, or none for a free one";
  if (reason == EADDRNOTAVAIL || reason == EINVAL)
    return "give --master-addr an address of this machine (ip addr shows them)";
  return "check that the interface is up";
}

[[noreturn]] void refuse(int port, const std::string& address, int reason) {
  const std::string what = port == 0 ? "a free port" : text("port ", port);
  throw Error(Code::io,
              text("bind ", what, " of ", address, " for the ranks to meet: ",
                   reason == EADDRINUSE ? "another program listens there"
                                        : std::generic_category().message(reason)),
              hint_for(reason));
}

/// The lowest port that the system gives to outgoing calls.
int lowest_ephemeral() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 0;
  return range >> low && low > kLowestPort ? low : 32'768;
}

void share(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

/// 0, or why not.
int bind_to(int socket, sockaddr_in address, int port) {
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

/// Any free port below the ephemeral ones, else any at all.
int bind_to_free(int socket, const sockaddr_in& address) {
  std::random_device entropy;
  std::uniform_int_distribution<int> port(kLowestPort, lowest_ephemeral() - 1);
  for (int i = 0; i < kTries; ++i) {
    const int reason = bind_to(socket, address, port(entropy));
    if (reason != EADDRINUSE) return reason;
  }
  return bind_to(socket, address, 0);
}

}  // namespace

StorePort reserve_store_port(std::optional<int> wanted, bool listen, const std::string& host) {
  StorePort store{core::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                  wanted.value_or(0)};
  if (!store.socket.is_open()) refuse(store.port, host, errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) refuse(store.port, host, EINVAL);
  // A port of our choice must be nobody else's, so it is bound before it may be shared; one that
  // the user names may still have connections of an earlier job that are fading out.
  if (wanted) share(store.socket.get());
  const int reason = wanted ? bind_to(store.socket.get(), address, *wanted)
                            : bind_to_free(store.socket.get(), address);
  share(store.socket.get());
  if (reason != 0) refuse(store.port, host, reason);
  socklen_t size = sizeof address;
  if (::getsockname(store.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    refuse(store.port, host, errno);
  store.port = ntohs(address.sin_port);
  if (listen && ::listen(store.socket.get(), SOMAXCONN) != 0) refuse(store.port, host, errno);
  return store;
}

}  // namespace yoke::launch
