#include "backends.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
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
using StorePtr = c10::intrusive_ptr<c10d::Store>;

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
  StorePtr store;
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
  std::vector<std::string> all;
  std::vector<std::string> missing;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (int peer = 0; peer < size; ++peer) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    try {
      store->wait({key(peer)}, std::max(left, std::chrono::milliseconds(1)));
      const auto bytes = store->get(key(peer));
      all.emplace_back(bytes.begin(), bytes.end());
    } catch (const std::exception&) {
      missing.push_back(std::to_string(peer));
    }
  }
  if (!missing.empty()) {
    throw Error(
        Code::timeout,
        text("rank ", rank, ": ", round, ": waited ", static_cast<double>(timeout.count()) / 1000.0,
             " s for ", size, " ranks: missing rank ", core::joined(missing)),
        "check that as many ranks were started as the world size says");
  }
  return all;
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
