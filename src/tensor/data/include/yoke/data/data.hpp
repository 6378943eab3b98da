#pragma once

/// Room data: data sets as tensors, and the loader that brings each rank its share of every epoch
/// in batches on its device. Needs torch.

#include "yoke/data/annotated.hpp"
#include "yoke/data/batch.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/data/dataset.hpp"
#include "yoke/data/idx_images.hpp"
#include "yoke/data/images.hpp"
#include "yoke/data/mix.hpp"
#include "yoke/data/named_dataset.hpp"
#include "yoke/data/placement.hpp"
#include "yoke/data/stream.hpp"
#include "yoke/data/synthetic.hpp"
#include "yoke/data/tensor_dataset.hpp"
#include "yoke/data/tokens.hpp"
#include "yoke/data/torch_dataset.hpp"
