#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "yoke/comm/group.hpp"

namespace yoke::comm {

struct StoreOptions {
  std::string host = "127.0.0.1";
  int port{0};
  int rank{0};
  int size{1};
  bool served_by_agent = false;            ///< torchrun's agent keeps it: every rank is a client
  std::optional<int> listen_descriptor{};  ///< bound by the launcher, inherited by rank 0
  std::chrono::milliseconds timeout{60'000};
};

/// The key-value store through which the ranks find each other; rank 0 serves it. One rank: in
/// memory. Errors: timeout when the store is not up or ranks are missing; io for an occupied port,
/// both with host and port.
[[nodiscard]] c10::intrusive_ptr<c10d::Store> open_store(const StoreOptions& options);

struct BackendOptions {
  int rank{0};
  int size{1};
  std::chrono::milliseconds timeout{30'000};
  std::string interface_name{};  ///< network interface for Gloo; empty: loopback on one host, else
                                 ///< the host's name
  bool one_host = true;
  bool check_calls = false;
};

[[nodiscard]] std::unique_ptr<Group> gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                const BackendOptions& options,
                                                Group* control = nullptr);

/// Requires: a CUDA build and the rank's device set as current. `control` carries counts on the
/// host.
[[nodiscard]] std::unique_ptr<Group> nccl_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                const BackendOptions& options, at::Device device,
                                                Group* control);

/// Collective. Errors: unsupported, on every rank, where the ranks cannot map each other's memory.
[[nodiscard]] std::unique_ptr<Group> shm_group(const c10::intrusive_ptr<c10d::Store>& store,
                                               const BackendOptions& options);

/// Collective over the store: one string per rank.
[[nodiscard]] std::vector<std::string> exchange_strings(
    const c10::intrusive_ptr<c10d::Store>& store, const std::string& round, int rank, int size,
    const std::string& mine, std::chrono::milliseconds timeout);

}  // namespace yoke::comm
