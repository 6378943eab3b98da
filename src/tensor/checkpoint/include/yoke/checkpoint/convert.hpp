#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/archive/tensor.hpp"

namespace yoke::checkpoint {

struct ToArchiveOptions {
  bool snapshot = false;  ///< copies CPU tensors too, so that the next step may change them
};

/// Turns tensors into archive tensors, for one file. Use one object for all tensors of the file:
/// what shares bytes then still does (tied weights), also after the copy from a GPU.
///
///   ToArchive to_archive;
///   Value state = Dict{{{"step", 3}, {"exp_avg", to_archive(exp_avg)}}};
///   save_value("optimizer.pt", state);
///
/// Owns: the result keeps a CPU tensor's memory alive and shares it, so write before the next step
///   changes it, or ask for a snapshot. Tensors on other devices are copied at once.
/// Errors: invalid_argument for an undefined tensor; unsupported for a sparse or quantised one and
///   for a dtype that archive::Dtype lacks.
/// Cost: nothing for a CPU tensor; one copy to the host for each run of bytes that lies elsewhere.
class ToArchive {
 public:
  explicit ToArchive(ToArchiveOptions options = {}) : options_(options) {}

  [[nodiscard]] archive::Tensor operator()(const at::Tensor& tensor);

 private:
  /// Storage, first byte and length of what was copied, and its dtype.
  using Key = std::tuple<const void*, std::size_t, std::size_t, archive::Dtype>;

  archive::Tensor copied(const at::Tensor& tensor, archive::Dtype dtype);

  ToArchiveOptions options_;
  std::map<Key, std::pair<at::Tensor, at::Tensor>>
      copies_;  ///< source, which keeps the address taken; copy
};

/// Turns archive tensors into CPU tensors without a copy. Use one object for all tensors of a file,
/// so that those that share a storage still do.
///
/// Owns: the tensors keep the file mapped. They may be written: the file does not change.
class FromArchive {
 public:
  [[nodiscard]] at::Tensor operator()(const archive::Tensor& tensor);

 private:
  std::map<const std::byte*, at::Tensor> storages_;  ///< as bytes
};

}  // namespace yoke::checkpoint
