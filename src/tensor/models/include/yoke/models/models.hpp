#pragma once

/// Models for the recipes, with torchvision's parameter names where torchvision has the model.
#include "yoke/models/image_classifier.hpp"
#include "yoke/models/layout.hpp"
#include "yoke/models/mlp.hpp"
#include "yoke/models/registry.hpp"
#include "yoke/models/resnet.hpp"
#include "yoke/models/small_cnn.hpp"
