// Two cards behind NVML's C interface: card 0 works, card 1 is lost. nvmlInit_v2 fails where
// STUB_NVML_INIT is set.

#include <cstdio>
#include <cstdlib>

namespace {

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct MemoryInfo {
  unsigned long long total, free, used;
};

int cards[2];
int open_count = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (std::getenv("STUB_NVML_INIT") != nullptr) return 9;
  ++open_count;
  return 0;
}
int nvmlShutdown() { return --open_count; }
const char* nvmlErrorString(int result) {
  return result == 9 ? "Driver Not Loaded" : result == 15 ? "GPU is lost" : "Invalid Argument";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return open_count > 0 ? 0 : 1;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index > 1) return 2;
  *handle = &cards[index];
  return index == 1 ? 15 : 0;
}
int nvmlDeviceGetUUID(void*, char* text, unsigned size) {
  return std::snprintf(text, size, "GPU-5a88e6c1-0000-1111-2222-333344445555") > 0 ? 0 : 7;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  return std::snprintf(text, size, "NVIDIA H200") > 0 ? 0 : 7;
}
int nvmlDeviceGetPciInfo_v3(void*, PciInfo* info) {
  *info = {};
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:1B:00.0");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, MemoryInfo* info) {
  *info = {150'754'820'096ULL, 1, 2};
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}

}  // extern "C"
