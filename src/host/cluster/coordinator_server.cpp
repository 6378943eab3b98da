#include "yoke/cluster/coordinator_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "yoke/cluster/message.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using core::text;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kTickMs = 50;

struct Request {
  std::string body{};
  bool too_long = false;
};

class Server {
 public:
  Server(const ServerOptions& options, CoordinatorOptions coordinator)
      : options_(options), coordinator_(std::move(coordinator), Clock::now()) {
    const int listener = listen_at();
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL, 0, nullptr, nullptr, &Server::take, this,
                               MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED,
                               &Server::forget, this, MHD_OPTION_CONNECTION_TIMEOUT, 10U,
                               MHD_OPTION_CONNECTION_LIMIT, 4096U, MHD_OPTION_END);
    if (daemon_ != nullptr) return;
    ::close(listener);
    throw Error(Code::io, text("start the coordinator at ", options_.address, ":", port_));
  }
  ~Server() { MHD_stop_daemon(daemon_); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] int port() const { return port_; }

  void run() {
    while (!coordinator_.finished(Clock::now())) {
      MHD_run_wait(daemon_, kTickMs);
      coordinator_.pass_time(Clock::now());
    }
    // Answers that are on their way.
    for (int i = 0; i < 10; ++i) MHD_run_wait(daemon_, kTickMs / 5);
  }

 private:
  int listen_at() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(options_.port));
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    const bool bound = ::inet_pton(AF_INET, options_.address.c_str(), &address.sin_addr) == 1 &&
                       ::bind(listener, raw, size) == 0 && ::listen(listener, SOMAXCONN) == 0 &&
                       ::getsockname(listener, raw, &size) == 0;
    if (!bound) {
      const int reason = errno;
      ::close(listener);
      throw Error(
          Code::io,
          text("listen at ", options_.address, ":", options_.port, " for the machines to meet: ",
               reason == EADDRINUSE ? "another program listens there"
                                    : std::generic_category().message(reason)),
          "give --rdzv-endpoint another port, and the same on all machines");
    }
    port_ = ntohs(address.sin_port);
    return listener;
  }

  static MHD_Result take(void* self, MHD_Connection* connection, const char* url,
                         const char* method, const char* /*version*/, const char* upload,
                         std::size_t* upload_size, void** state) {
    if (*state == nullptr) {
      *state = new Request;  // forget() owns it
      return MHD_YES;
    }
    auto& request = *static_cast<Request*>(*state);
    if (*upload_size > 0) {
      request.too_long = request.too_long || request.body.size() + *upload_size > kMostBytes;
      if (!request.too_long) request.body.append(upload, *upload_size);
      *upload_size = 0;
      return MHD_YES;
    }
    return static_cast<Server*>(self)->answer(connection, url, method, request);
  }

  static void forget(void* /*self*/, MHD_Connection* /*connection*/, void** state,
                     MHD_RequestTerminationCode /*how*/) {
    delete static_cast<Request*>(*state);
    *state = nullptr;
  }

  MHD_Result answer(MHD_Connection* connection, std::string_view url, std::string_view method,
                    const Request& request) {
    const char* mac = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, kMacHeader);
    const bool authentic = method == "POST" && url == kPath && !request.too_long &&
                           mac != nullptr &&
                           is_authentic(options_.key, Direction::request, request.body, mac);
    if (!authentic) {
      coordinator_.count_refused();
      return send(connection, MHD_HTTP_FORBIDDEN, {});
    }
    core::Json message = core::Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
    if (!message.is_object()) return send(connection, MHD_HTTP_BAD_REQUEST, {});
    try {
      return send(connection, MHD_HTTP_OK,
                  core::json_line(coordinator_.hear(message, Clock::now())));
    } catch (const core::Json::exception&) {
      return send(connection, MHD_HTTP_BAD_REQUEST, {});  // a member of another type
    }
  }

  MHD_Result send(MHD_Connection* connection, unsigned status, std::string body) const {
    const std::string mac = mac_of(options_.key, Direction::answer, body);
    MHD_Response* response =
        MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY);
    if (status == MHD_HTTP_OK) MHD_add_response_header(response, kMacHeader, mac.c_str());
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
  }

  ServerOptions options_;
  Coordinator coordinator_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
};

}  // namespace

void serve_coordinator(const ServerOptions& options, CoordinatorOptions coordinator,
                       const std::function<void(int port)>& listening) {
  Server server(options, std::move(coordinator));
  listening(server.port());
  server.run();
}

}  // namespace yoke::cluster
