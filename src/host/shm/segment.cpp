#include "segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "yoke/core/descriptor.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr char kFileName[] = "yoke-shm";

std::string reason(int system_error) { return std::generic_category().message(system_error); }

// Segments made by this process, for ranks that are threads of it.
struct Registry {
  std::mutex mutex;
  std::map<Nonce, std::weak_ptr<Segment>> segments;
};

Registry& registry() {
  static auto* const instance = new Registry;  // never destroyed: a static team may outlive it
  return *instance;
}

Nonce random_nonce() {
  Nonce nonce{};
  std::size_t have = 0;
  auto* const bytes = reinterpret_cast<unsigned char*>(nonce.data());
  while (have < sizeof(nonce)) {
    const ssize_t got = ::getrandom(bytes + have, sizeof(nonce) - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return nonce;
}

[[noreturn]] void refuse(const SegmentAddress& address, const std::string& why) {
  throw Error(Code::unsupported,
              core::text("open /proc/", address.pid, "/fd/", address.descriptor, ": ", why),
              "ranks must be processes of one user in one host and process namespace; "
              "otherwise use another backend");
}

// Opening whatever lies behind a number may do harm (a pipe, a device), so its name is looked at
// first.
void check_name(const SegmentAddress& address, const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size() - 1);
  if (size < 0) refuse(address, reason(errno));
  const std::string name(target.data(), static_cast<std::size_t>(size));
  if (!name.starts_with(core::text("/memfd:", kFileName))) {
    refuse(address, core::text("is ", name, ", not a segment of Yoke; process ", address.pid,
                               " of this namespace is another one"));
  }
}

}  // namespace

std::shared_ptr<Segment> Segment::create(std::size_t bytes, bool populate) {
  const std::string what = core::text("allocate ", core::bytes_text(bytes), " of shared memory");
  core::Descriptor file(::memfd_create(kFileName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) throw Error(Code::io, core::text(what, ": ", reason(errno)));
  const auto whole = static_cast<off_t>(kHeaderBytes + bytes);
  if (whole < static_cast<off_t>(bytes) || ::ftruncate(file.get(), whole) != 0) {
    throw Error(Code::io, core::text(what, ": ", reason(errno)));
  }
  // Nobody who holds the descriptor can cut the file under our feet.
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);

  std::shared_ptr<Segment> segment(new Segment);
  segment->bytes_ = bytes;
  segment->nonce_ = random_nonce();
  segment->map(file.get(), populate, what);
  // Takes the memory now, not in the middle of a step; what map() could not get is an error here.
  if (populate && ::fallocate(file.get(), 0, 0, whole) != 0) {
    throw Error(Code::io, core::text(what, ": ", reason(errno)));
  }
  std::memcpy(segment->mapping_, segment->nonce_.data(), sizeof(Nonce));
  segment->descriptor_ = file.release();

  const std::lock_guard lock(registry().mutex);
  registry().segments[segment->nonce_] = segment;
  return segment;
}

std::shared_ptr<Segment> Segment::open(const SegmentAddress& address, bool populate) {
  if (address.pid == ::getpid()) {
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().segments.find(address.nonce);
    if (found != registry().segments.end()) {
      if (std::shared_ptr<Segment> segment = found->second.lock()) return segment;
    }
    refuse(address, "this process has no such segment");
  }
  const std::string path = core::text("/proc/", address.pid, "/fd/", address.descriptor);
  check_name(address, path);
  const core::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.is_open()) refuse(address, reason(errno));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) refuse(address, reason(errno));
  if (static_cast<std::size_t>(info.st_size) != kHeaderBytes + address.bytes) {
    refuse(address,
           core::text("has ", info.st_size, " B instead of ", kHeaderBytes + address.bytes));
  }
  std::shared_ptr<Segment> segment(new Segment);
  segment->bytes_ = address.bytes;
  segment->nonce_ = address.nonce;
  segment->map(file.get(), populate, core::text("map ", path));
  if (std::memcmp(segment->mapping_, address.nonce.data(), sizeof(Nonce)) != 0) {
    refuse(address, "is the segment of another team");
  }
  return segment;
}

void Segment::map(int descriptor, bool populate, const std::string& what) {
  const std::size_t whole = kHeaderBytes + bytes_;
  void* const address = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) throw Error(Code::io, core::text(what, ": ", reason(errno)));
  mapping_ = address;
  // Pages of 2 MiB where the kernel gives them (shmem_enabled "advise", as Debian has it): a bucket
  // is walked from end to end in every step. Before the pages are taken, or they are small ones.
  ::madvise(address, whole, MADV_HUGEPAGE);
  // Linux before 5.14 does not know this; there the pages come one by one.
  if (populate) ::madvise(address, whole, MADV_POPULATE_WRITE);
}

Segment::~Segment() {
  close_descriptor();
  if (mapping_ != nullptr) ::munmap(mapping_, kHeaderBytes + bytes_);
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().segments.find(nonce_);
  if (found != registry().segments.end() && found->second.expired()) {
    registry().segments.erase(found);
  }
}

std::byte* Segment::data() const noexcept {
  return static_cast<std::byte*>(mapping_) + kHeaderBytes;
}

SegmentAddress Segment::address() const noexcept {
  return {::getpid(), descriptor_, bytes_, nonce_};
}

void Segment::close_descriptor() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace yoke::shm
