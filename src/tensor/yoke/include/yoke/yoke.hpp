#pragma once

/// All of Yoke that a training program needs. Each room's own header is there for those who want
/// less of it.
///
/// In namespace yoke stand run, World, DistributedDataParallel, DataParallel, mean, transforms and
/// Error; the rest is in the namespaces of its rooms: models, data, optim, checkpoint, nn, train.

#include "yoke/checkpoint/checkpoint.hpp"
#include "yoke/comm/comm.hpp"
#include "yoke/core/core.hpp"
#include "yoke/data/data.hpp"
#include "yoke/models/models.hpp"
#include "yoke/nn/nn.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/data_parallel.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"
#include "yoke/parallel/mean.hpp"
#include "yoke/train/train.hpp"

namespace yoke {
namespace transforms = feed::transforms;  // torchvision's, for data::ImageFolder and its kin
}  // namespace yoke
