#pragma once

#include <map>
#include <string>
#include <vector>

#include "yoke/device/nvml.hpp"

namespace yoke::device {

/// Cards that are not there; for tests.
///
///   FakeNvml nvml(FakeNvml::cards(8));
///   nvml.fail(2, "GPU is lost");
class FakeNvml final : public Nvml {
 public:
  explicit FakeNvml(std::vector<Card> cards);

  /// `count` cards of 141 GiB; UUIDs GPU-00000000-... , GPU-00000001-... .
  [[nodiscard]] static std::vector<Card> cards(int count);

  /// From now on card(index) throws with this reason.
  void fail(int index, std::string reason);

  [[nodiscard]] int count() const override;
  [[nodiscard]] Card card(int index) const override;

 private:
  std::vector<Card> cards_;
  std::map<int, std::string> failures_;
};

}  // namespace yoke::device
