#include "backends.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/version.h>
#ifdef YOKE_CUDA
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#include <utility>

#include "c10d_group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/text.hpp"

namespace yoke::comm {
namespace {

using core::text;
using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// torch 2.6's newer server cannot take over a listening socket; its older one can.
constexpr bool kUvTakesDescriptor = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9;

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{50};
constexpr std::chrono::milliseconds kStoreLingers{500};

StorePtr prefixed(const StorePtr& store, const std::string& prefix) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

std::string first_line(const std::exception& error) {
  const std::string whole = error.what();
  return whole.substr(0, whole.find('\n'));
}

std::shared_ptr<::gloo::transport::Device> gloo_device(const BackendOptions& options) {
  std::string name = options.interface_name;
  if (const char* wanted = std::getenv("GLOO_SOCKET_IFNAME"); name.empty() && wanted != nullptr)
    name = wanted;
  if (!name.empty()) {
    core::check_gloo_interface({{"GLOO_SOCKET_IFNAME", name}}, core::network_interfaces());
    return c10d::ProcessGroupGloo::createDeviceForInterface(core::split(name, ',').front());
  }
  if (options.one_host) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

// Asked again and again: a wait of torch's store that ends in vain, and its search for one that is
// not there, write pages to the terminal.
template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  auto pause = kFirstPause;
  while (!condition()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  return true;
}

bool appear(c10d::Store& store, const std::vector<std::string>& keys,
            std::chrono::milliseconds timeout) {
  return comes_true([&] { return store.check(keys); }, timeout);
}

// What a rank reads may make it end at once, and rank 0's end is the store's: it waits until the
// others have read as well.
void wait_for_readers(c10d::Store& store, const std::string& round, int rank, int size) {
  const auto key = [&round](int r) { return text("read/", round, "/", r); };
  if (rank != 0) return store.set(key(rank), std::vector<std::uint8_t>{1});
  std::vector<std::string> keys;
  for (int peer = 1; peer < size; ++peer) keys.push_back(key(peer));
  static_cast<void>(appear(store, keys, kStoreLingers));
}

bool takes_calls(const addrinfo& address) {
  const int call = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0);
  if (call < 0) return false;
  const bool taken = ::connect(call, address.ai_addr, address.ai_addrlen) == 0;
  ::close(call);
  return taken;
}

bool takes_calls(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list) != 0) return false;
  bool taken = false;
  for (const addrinfo* entry = list; entry != nullptr && !taken; entry = entry->ai_next)
    taken = takes_calls(*entry);
  ::freeaddrinfo(list);
  return taken;
}

void wait_for_store(const StoreOptions& options) {
  const auto called = [&] { return takes_calls(options.host, options.port); };
  if (comes_true(called, options.timeout)) return;
  throw Error(Code::timeout,
              text("rank ", options.rank, ": reach the store at ", options.host, ":", options.port,
                   ": nobody took calls there for ",
                   static_cast<double>(options.timeout.count()) / 1000.0, " s"),
              "check that rank 0 runs and that this host reaches it");
}

}  // namespace

StorePtr open_store(const StoreOptions& options) {
  if (options.size == 1 && !options.served_by_agent) return c10::make_intrusive<c10d::HashStore>();
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<std::uint16_t>(options.port);
  tcp.isServer = options.rank == 0 && !options.served_by_agent;
  tcp.numWorkers = static_cast<std::size_t>(options.size);
  tcp.waitWorkers = false;  // who is missing is found out below, by name
  tcp.timeout = options.timeout;
  tcp.multiTenant = false;
  if (tcp.isServer) tcp.masterListenFd = options.listen_descriptor;
  if (tcp.masterListenFd) tcp.useLibUV = kUvTakesDescriptor;
  StorePtr store;
  if (!tcp.isServer) wait_for_store(options);
  try {
    store = c10::make_intrusive<c10d::TCPStore>(options.host, tcp);
  } catch (const std::exception& error) {
    const std::string reason = first_line(error);
    if (tcp.isServer) {
      throw Error(Code::io, text("rank 0: open the store on port ", options.port, ": ", reason),
                  "the port is taken: choose another, or leave the choice to the launcher");
    }
    throw Error(Code::timeout,
                text("rank ", options.rank, ": reach the store at ", options.host, ":",
                     options.port, ": ", reason),
                "check that rank 0 runs and that this host reaches it");
  }
  store->setTimeout(options.timeout);
  return prefixed(store, "yoke");
}

std::vector<std::string> exchange_strings(const StorePtr& store, const std::string& round, int rank,
                                          int size, const std::string& mine,
                                          std::chrono::milliseconds timeout) {
  const auto key = [&round](int r) { return text("exchange/", round, "/", r); };
  store->set(key(rank), std::vector<std::uint8_t>(mine.begin(), mine.end()));
  std::vector<std::string> keys;
  for (int peer = 0; peer < size; ++peer) keys.push_back(key(peer));
  try {
    // Rank 0 serves the store: it waits a little longer, so that the others can still ask who is
    // missing.
    if (!appear(*store, keys, rank == 0 ? timeout + kStoreLingers : timeout)) {
      std::vector<std::string> missing;
      for (int peer = 0; peer < size; ++peer) {
        if (!store->check({key(peer)})) missing.push_back(std::to_string(peer));
      }
      throw Error(Code::timeout,
                  text("rank ", rank, ": ", round, ": waited ",
                       static_cast<double>(timeout.count()) / 1000.0, " s for ", size,
                       " ranks: missing rank ", core::joined(missing)),
                  "check that as many ranks were started as the world size says");
    }
    std::vector<std::string> all;
    for (const std::string& each : keys) {
      const auto bytes = store->get(each);
      all.emplace_back(bytes.begin(), bytes.end());
    }
    wait_for_readers(*store, round, rank, size);
    return all;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Code::peer_lost, text("rank ", rank, ": ", round, ": the store on rank 0 is gone"),
                "look at rank 0: it ended first")
        .caused_by(std::runtime_error(first_line(error)));
  }
}

std::unique_ptr<Group> gloo_group(const StorePtr& store, const BackendOptions& options,
                                  Group* control) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(gloo_device(options));
  gloo->threads = 2;
  const StorePtr own = prefixed(store, "gloo");
  try {
    auto backend =
        c10::make_intrusive<c10d::ProcessGroupGloo>(own, options.rank, options.size, gloo);
    return std::make_unique<C10dGroup>(
        std::move(backend), own,
        C10dGroupOptions{
            .name = "gloo", .timeout = options.timeout, .check_calls = options.check_calls},
        control);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Code::timeout,
                text("rank ", options.rank, ": connect ", options.size,
                     " ranks by gloo: ", first_line(error)),
                "check that all ranks run and reach each other's network interface");
  }
}

std::unique_ptr<Group> nccl_group([[maybe_unused]] const StorePtr& store,
                                  [[maybe_unused]] const BackendOptions& options,
                                  [[maybe_unused]] at::Device device,
                                  [[maybe_unused]] Group* control) {
#ifdef YOKE_CUDA
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  nccl->config.blocking =
      1;  // 2.6 and 2.7.0 go non-blocking with a bound device and then hang with NCCL 2.26
  const StorePtr own = prefixed(store, "nccl");
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(own, options.rank, options.size, nccl);
  backend->setBoundDeviceId(device);
  return std::make_unique<C10dGroup>(
      std::move(backend), own,
      C10dGroupOptions{
          .name = "nccl", .timeout = options.timeout, .check_calls = options.check_calls},
      control);
#else
  throw Error(Code::unsupported, "join ranks by nccl: this Yoke was built without CUDA",
              "build with the CUDA flavour (tools/setup --flavour cuda), or use gloo or shm");
#endif
}

}  // namespace yoke::comm
