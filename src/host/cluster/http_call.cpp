#include "yoke/cluster/http_call.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{8} << 20;

sockaddr_in socket_address(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(endpoint.port));
  ::inet_pton(AF_INET, endpoint.address.c_str(), &address.sin_addr);
  return address;
}

std::string reason_text(int reason) { return std::generic_category().message(reason); }

}  // namespace

std::string Endpoint::text() const { return core::text(host, ":", port); }

Endpoint resolve_endpoint(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (error != 0) {
    throw Error(Code::not_found,
                core::text("find the machine '", host, "': ", ::gai_strerror(error)),
                "give --rdzv-endpoint a name that all machines can resolve, or an address");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* address = reinterpret_cast<const sockaddr_in*>(list->ai_addr);
  ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
  return {host, text.data(), port};
}

std::string address_towards(const Endpoint& endpoint) {
  const core::Descriptor probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = socket_address(endpoint);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  // Sends nothing: it only asks the routes.
  if (::connect(probe.get(), raw, size) != 0 || ::getsockname(probe.get(), raw, &size) != 0)
    return {};
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

HttpCall::HttpCall(const Endpoint& endpoint, const std::string& path,
                   const std::string& header_lines, const std::string& body,
                   std::chrono::milliseconds limit)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      deadline_(Clock::now() + limit) {
  out_ = core::text("POST ", path, " HTTP/1.1\r\nHost: ", endpoint.host,
                    "\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ",
                    body.size(), "\r\n", header_lines, "\r\n", body);
  const sockaddr_in address = socket_address(endpoint);
  if (!socket_.is_open()) {
    fail(reason_text(errno));
    return;
  }
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    fail(reason_text(errno));
  }
}

short HttpCall::events() const noexcept {
  return out_.empty() ? static_cast<short>(POLLIN) : static_cast<short>(POLLOUT);
}

void HttpCall::move() {
  if (done_) return;
  while (!out_.empty()) {
    const ssize_t n = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n > 0) {
      out_.erase(0, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN) {
      break;
    } else {
      return fail(reason_text(errno));
    }
  }
  std::array<char, 1 << 14> block;
  while (out_.empty()) {
    const ssize_t n = ::recv(socket_.get(), block.data(), block.size(), 0);
    if (n > 0) {
      in_.append(block.data(), static_cast<std::size_t>(n));
      if (in_.size() > kMostBytes) return fail("the answer is too long");
    } else if (n == 0) {
      return finish();
    } else if (errno == EAGAIN || errno == EINTR) {
      break;
    } else {
      return fail(reason_text(errno));
    }
  }
  if (Clock::now() >= deadline_) fail("no answer in time");
}

void HttpCall::wait() {
  while (!done_) {
    pollfd waiting{socket_.get(), events(), 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count() + 1;
    ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    move();
  }
}

void HttpCall::fail(std::string why) {
  failure_ = std::move(why);
  status_ = 0;
  done_ = true;
  socket_.close();
}

void HttpCall::finish() {
  const std::size_t end = in_.find("\r\n\r\n");
  if (!in_.starts_with("HTTP/1.1 ") || end == std::string::npos) return fail("no HTTP answer");
  head_ = in_.substr(0, end);
  body_ = in_.substr(end + 4);
  const auto length = core::parse_integer(header("Content-Length"));
  if (length && static_cast<std::size_t>(*length) != body_.size())
    return fail("the answer was cut short");
  status_ = static_cast<int>(core::parse_integer(head_.substr(9, 3)).value_or(0));
  done_ = true;
  socket_.close();
}

std::string HttpCall::header(const std::string& name) const {
  for (const std::string& line : core::split(head_, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == name.size() && ::strncasecmp(line.c_str(), name.c_str(), colon) == 0)
      return std::string(core::trimmed(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

}  // namespace yoke::cluster
