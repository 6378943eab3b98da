#pragma once

/// Room image: Dockerfiles and requirements files held against what fits; what a container gets for
/// its cards, as an explained plan; a sandbox that runs an image; the plan for other engines.

#include "yoke/image/build_image.hpp"
#include "yoke/image/build_plan.hpp"
#include "yoke/image/cdi.hpp"
#include "yoke/image/emit.hpp"
#include "yoke/image/engine.hpp"
#include "yoke/image/extend.hpp"
#include "yoke/image/gpu_request.hpp"
#include "yoke/image/image_content.hpp"
#include "yoke/image/injection.hpp"
#include "yoke/image/layer.hpp"
#include "yoke/image/linker_cache.hpp"
#include "yoke/image/lint.hpp"
#include "yoke/image/oci_layout.hpp"
#include "yoke/image/render.hpp"
#include "yoke/image/run_request.hpp"
#include "yoke/image/sandbox.hpp"
#include "yoke/image/tree.hpp"
#include "yoke/image/wheel_lock.hpp"
