#pragma once

/// Room feed: from files to samples as bytes, in an order and a share that follow from (seed,
/// epoch, rank) alone, prepared ahead by threads. No torch.

#include "yoke/feed/classes.hpp"
#include "yoke/feed/decode.hpp"
#include "yoke/feed/encode.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/idx.hpp"
#include "yoke/feed/image_folder.hpp"
#include "yoke/feed/image_rows.hpp"
#include "yoke/feed/joint_transforms.hpp"
#include "yoke/feed/labelled_images.hpp"
#include "yoke/feed/lmdb_images.hpp"
#include "yoke/feed/order.hpp"
#include "yoke/feed/pack.hpp"
#include "yoke/feed/pixels.hpp"
#include "yoke/feed/position.hpp"
#include "yoke/feed/random.hpp"
#include "yoke/feed/shard.hpp"
#include "yoke/feed/slot_ring.hpp"
#include "yoke/feed/survey.hpp"
#include "yoke/feed/tar_shards.hpp"
#include "yoke/feed/token_file.hpp"
#include "yoke/feed/transforms.hpp"
#include "yoke/feed/worker_count.hpp"
