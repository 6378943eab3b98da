#include "yoke/feed/joint_transforms.hpp"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"

namespace yoke::feed {
namespace {

using namespace transforms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Draws draws(std::int64_t index) { return Draws({.seed = 7, .epoch = 3, .index = index}); }

// A black image with a white rectangle, the same one in the mask, and its box.
Annotated marked(int width, int height, const Region& mark) {
  Mask mask{width, height, {}};
  Annotated annotated{
      .image = Image(width, height),
      .boxes = {{static_cast<float>(mark.left), static_cast<float>(mark.top),
                 static_cast<float>(mark.right()), static_cast<float>(mark.bottom())}},
      .labels = {5}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool inside = x >= mark.left && x < mark.right() && y >= mark.top && y < mark.bottom();
      for (int channel = 0; channel < 4; ++channel)
        annotated.image.row(y)[4 * x + channel] = inside ? 255 : 0;
      mask.values.push_back(inside ? 9 : 0);
    }
  }
  annotated.mask = std::move(mask);
  return annotated;
}

// The smallest box around what is set.
template <class IsSet>
Box around(int width, int height, const IsSet& is_set) {
  Box box{static_cast<float>(width), static_cast<float>(height), 0, 0};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (!is_set(x, y)) continue;
      box = {std::min(box.left, static_cast<float>(x)), std::min(box.top, static_cast<float>(y)),
             std::max(box.right, static_cast<float>(x + 1)),
             std::max(box.bottom, static_cast<float>(y + 1))};
    }
  }
  return box;
}

Box around_mask(const Annotated& annotated) {
  const Mask mask = annotated.mask.value_or(Mask{});
  return around(mask.width, mask.height, [&](int x, int y) {
    return mask.values[static_cast<std::size_t>(y * mask.width + x)] == 9;
  });
}

Box around_white(const Annotated& annotated) {
  return around(annotated.image.width(), annotated.image.height(),
                [&](int x, int y) { return annotated.image.row(y)[4 * x] > 127; });
}

void expect_near(const Box& left, const Box& right, float tolerance) {
  EXPECT_NEAR(left.left, right.left, tolerance);
  EXPECT_NEAR(left.top, right.top, tolerance);
  EXPECT_NEAR(left.right, right.right, tolerance);
  EXPECT_NEAR(left.bottom, right.bottom, tolerance);
}

// Where the mark is still whole inside, image, mask and box say the same place.
TEST(JointTransforms, KeepImageMaskAndBoxesTogether) {
  const std::vector<std::vector<Step>> pipelines{
      {RandomResizedCrop{.height = 96, .width = 80, .scale = {0.5, 1}}, RandomHorizontalFlip{}},
      {Resize{.size = 50}, RandomHorizontalFlip{}, RandomVerticalFlip{}},
      {RandomCrop{.height = 70, .width = 60, .padding = 9}, RandomVerticalFlip{}},
      {Resize{.size = 40, .width = 90}, CenterCrop{.height = 110}}};
  int whole = 0;
  for (const auto& steps : pipelines) {
    const JointTransforms joint(steps);
    for (std::int64_t index = 0; index < 40; ++index) {
      Annotated annotated = marked(100, 80, {40, 30, 20, 15});
      joint.apply(annotated, draws(index));
      if (annotated.boxes.empty()) continue;
      ++whole;
      // A pixel that the edge cuts counts or not; the box says where in it.
      expect_near(around_mask(annotated), annotated.boxes[0], 1.0F);
      expect_near(around_white(annotated), annotated.boxes[0], 1.5F);
    }
  }
  EXPECT_GE(whole, 150);
}

TEST(JointTransforms, MakeOfTheImageWhatTransformsMakeOfIt) {
  const std::vector<Step> steps{RandomResizedCrop{.height = 48}, RandomHorizontalFlip{},
                                ColorJitter{.brightness = around_one(0.4)}};
  const File file = jpeg_file(picture(120, 90));
  const Transforms alone(steps);
  for (std::int64_t index = 0; index < 20; ++index) {
    TransformWorkspace workspace;
    Draws chances = draws(index);
    std::vector<std::uint8_t> expected(alone.bytes());
    alone.apply(file, chances, workspace, std::as_writable_bytes(std::span(expected)));

    Annotated annotated;
    ImageDecoder decoder;
    decoder.open(file);
    decoder.read(annotated.image);
    JointTransforms(steps).apply(annotated, draws(index));

    EXPECT_EQ(rgb(annotated.image), expected) << index;
  }
}

TEST(JointTransforms, CutBoxesAndDropThoseOfWhichNothingIsLeft) {
  Annotated annotated{.image = Image(20, 20),
                      .boxes = {{0, 0, 8, 8}, {0, 0, 4, 4}, {10, 12, 20, 20}},
                      .labels = {1, 2, 3}};

  JointTransforms({CenterCrop{.height = 10}}).apply(annotated, draws(0));

  EXPECT_THAT(annotated.boxes, ElementsAre(Box{0, 0, 3, 3}, Box{5, 7, 10, 10}));
  EXPECT_THAT(annotated.labels, ElementsAre(1, 3));
}

TEST(JointTransforms, FillWhatIsNoImageWithTheValueAskedFor) {
  Annotated annotated{.image = Image(2, 2), .mask = Mask{2, 2, {1, 2, 3, 4}}};

  JointTransforms({CenterCrop{.height = 4}}, {.mask_fill = 255}).apply(annotated, draws(0));

  EXPECT_THAT(annotated.mask.value_or(Mask{}).values,
              ElementsAre(255, 255, 255, 255, 255, 1, 2, 255, 255, 3, 4, 255, 255, 255, 255, 255));
  EXPECT_THAT(annotated.boxes, IsEmpty());
}

TEST(JointTransforms, RefuseWhatDoesNotBelongTogether) {
  Annotated wrong_mask{.image = Image(2, 2), .mask = Mask{2, 1, {1, 2}}};
  Annotated wrong_labels{.image = Image(2, 2), .boxes = {{0, 0, 1, 1}}, .labels = {1, 2}};
  const JointTransforms joint({RandomHorizontalFlip{}});

  EXPECT_THAT(error_of([&] { joint.apply(wrong_mask, draws(0)); }).message(), HasSubstr("2 x 1"));
  EXPECT_THAT(error_of([&] { joint.apply(wrong_labels, draws(0)); }).message(),
              HasSubstr("1 boxes with 2 labels"));
  EXPECT_EQ(error_of([] { JointTransforms({Normalize{}}); }).code(), Code::unsupported);
  EXPECT_EQ(error_of([] { JointTransforms({Resize{.size = 0}}); }).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace yoke::feed
