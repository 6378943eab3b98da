#include "yoke/cluster/http_call.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Takes one call, keeps what it said up to `end`, and answers with `answer`.
class OneAnswer {
 public:
  OneAnswer(std::string answer, std::string end)
      : answer_(std::move(answer)), end_(std::move(end)) {
    listener_ = core::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 1);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() { finish(); }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  std::string finish() {
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

  int port = 0;

 private:
  void serve() {
    const core::Descriptor call(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char block[4096];
    while (heard_.find(end_) == std::string::npos) {
      const ssize_t n = ::read(call.get(), block, sizeof block);
      if (n <= 0) return;
      heard_.append(block, static_cast<std::size_t>(n));
    }
    ::send(call.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
  }

  std::string answer_;
  std::string end_;
  std::string heard_;
  core::Descriptor listener_;
  std::thread thread_;
};

TEST(HttpCall, SendsABodyAndReadsTheAnswer) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nyoke-mac:  abc \r\n\r\nfine", "{body}");

  HttpCall call({"localhost", "127.0.0.1", server.port}, "/v1/beat", "Yoke-Mac: xyz\r\n", "{body}",
                10s);
  call.wait();

  EXPECT_EQ(call.status(), 200) << call.failure();
  EXPECT_EQ(call.body(), "fine");
  EXPECT_EQ(call.header("Yoke-Mac"), "abc");
  EXPECT_THAT(server.finish(),
              AllOf(HasSubstr("POST /v1/beat HTTP/1.1\r\n"), HasSubstr("Content-Length: 6\r\n"),
                    HasSubstr("Yoke-Mac: xyz\r\n"), HasSubstr("\r\n\r\n{body}")));
}

TEST(HttpCall, AnAnswerThatIsCutShortIsNone) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nfi", "x");

  HttpCall call({"localhost", "127.0.0.1", server.port}, "/", "", "x", 10s);
  call.wait();

  EXPECT_EQ(call.status(), 0);
  EXPECT_THAT(call.failure(), HasSubstr("cut short"));
}

TEST(HttpCall, SaysWhenNobodyListens) {
  const core::Descriptor held(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(held.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ::getsockname(held.get(), reinterpret_cast<sockaddr*>(&address), &size);

  HttpCall call({"localhost", "127.0.0.1", ntohs(address.sin_port)}, "/", "", "x", 10s);
  call.wait();

  EXPECT_EQ(call.status(), 0);
  EXPECT_THAT(call.failure(), HasSubstr("refused"));
}

TEST(Endpoint, ANameThatNobodyKnowsIsQuoted) {
  try {
    static_cast<void>(resolve_endpoint("no-such-host.invalid", 1));
    FAIL() << "was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.message(), HasSubstr("'no-such-host.invalid'"));
  }
}

TEST(Endpoint, TheLoopbackIsReachedFromItself) {
  EXPECT_EQ(address_towards({"localhost", "127.0.0.1", 1}), "127.0.0.1");
}

}  // namespace
}  // namespace yoke::cluster
