#pragma once

namespace yoke::data {

/// While one lives, torch's operations on this thread are not split over other threads: the
/// loader's threads are all there are, and a sum keeps its order for any number of them.
///
/// Threads: destroyed on the one that made it. Changes nothing where torch is without OpenMP.
class SerialTorch {
 public:
  SerialTorch();
  ~SerialTorch();
  SerialTorch(const SerialTorch&) = delete;
  SerialTorch& operator=(const SerialTorch&) = delete;

 private:
  int before_;
};

}  // namespace yoke::data
