#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "yoke/core/descriptor.hpp"

namespace yoke::cluster {

/// Where the coordinator is, resolved.
struct Endpoint {
  std::string host{};     ///< as given
  std::string address{};  ///< IPv4
  int port{0};
  [[nodiscard]] std::string text() const;
};

/// Errors: not_found for a name without an IPv4 address.
[[nodiscard]] Endpoint resolve_endpoint(const std::string& host, int port);

/// The address of this machine from which it reaches `endpoint`; empty if there is no route.
[[nodiscard]] std::string address_towards(const Endpoint& endpoint);

/// One POST that does not block its caller.
///
///   HttpCall call(endpoint, "/v1/beat", headers, body);
///   while (!call.done()) { poll(call.descriptor(), call.events()); call.move(); }
///
/// Owns: its connection. Errors: none thrown; a call that failed has status 0 and says why.
/// Threads: one.
class HttpCall {
 public:
  HttpCall(const Endpoint& endpoint, const std::string& path, const std::string& header_lines,
           const std::string& body, std::chrono::milliseconds limit);

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  [[nodiscard]] short events() const noexcept;

  /// As far as it goes without waiting.
  void move();

  /// Until it is done or its limit has passed.
  void wait();

  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// The value of a header of the answer; empty if it has none.
  [[nodiscard]] std::string header(const std::string& name) const;

 private:
  void fail(std::string why);
  void finish();

  core::Descriptor socket_;
  std::string out_;
  std::string in_;
  std::string head_;
  std::string body_;
  std::string failure_;
  std::chrono::steady_clock::time_point deadline_;
  int status_ = 0;
  bool done_ = false;
};

}  // namespace yoke::cluster
