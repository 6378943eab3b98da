#include "yoke/comm/process_ranks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <ATen/Parallel.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::comm {
namespace {

using core::text;

struct Child {
  pid_t pid = -1;
  int report = -1;  // the reading end of a pipe
};

[[noreturn]] void run_child(int rank, int size, const ProcessRanksOptions& options,
                            const LoopbackPort& port, int report,
                            const std::function<std::string(World&)>& rank_main) {
  std::string outcome;
  try {
    at::set_num_threads(std::max(
        1, at::get_num_threads() / size));  // else every rank's team of threads takes every core
    WorldOptions world_options;
    world_options.backend = options.backend;
    world_options.rank = world_options.local_rank = rank;
    world_options.world_size = world_options.local_world_size = size;
    world_options.master_port = port.number();
    if (rank == 0) world_options.store_descriptor = port.descriptor();
    if (!options.on_cards) world_options.device = at::kCPU;
    world_options.timeout = options.timeout;
    World world = World::join(world_options);
    outcome = rank_main(world);
  } catch (const std::exception& error) {
    outcome = error.what();
  }
  const ssize_t written = ::write(report, outcome.data(), outcome.size());
  ::_exit(written == static_cast<ssize_t>(outcome.size()) ? 0 : 99);
}

std::string read_all(int descriptor) {
  std::string whole;
  std::array<char, 4096> block{};
  while (true) {
    const ssize_t n = ::read(descriptor, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return whole;
    whole.append(block.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

LoopbackPort::LoopbackPort() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (descriptor_ < 0 || ::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(descriptor_, 64) != 0 ||
      ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw Error(Code::io, text("listen on a free loopback port: ", std::strerror(errno)));
  }
  number_ = ntohs(address.sin_port);
}

LoopbackPort::~LoopbackPort() { ::close(descriptor_); }

std::vector<std::string> run_process_ranks(int size, const ProcessRanksOptions& options,
                                           const std::function<std::string(World&)>& rank_main) {
  const LoopbackPort port;
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0)
      throw Error(Code::io, text("make a pipe: ", std::strerror(errno)));
    const pid_t pid = ::fork();
    if (pid < 0) throw Error(Code::io, text("fork rank ", rank, ": ", std::strerror(errno)));
    if (pid == 0) {
      ::close(ends[0]);
      run_child(rank, size, options, port, ends[1], rank_main);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::vector<std::string> outcomes;
  for (const Child& child : children) {
    outcomes.push_back(read_all(child.report));
    ::close(child.report);
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    if (WIFSIGNALED(status)) {
      outcomes.back() += text("died by signal ", WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0) {
      outcomes.back() += text("exited with ", WEXITSTATUS(status));
    }
  }
  return outcomes;
}

}  // namespace yoke::comm
