#include "yoke/data/annotated.hpp"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "yoke/data/named_dataset.hpp"

namespace yoke::data {
namespace {

using feed::Annotated;
using feed::Box;
using feed::Image;
using feed::JointTransforms;
using feed::Mask;
namespace transforms = feed::transforms;

// A street of 40 x 30 with `index` white cars of 4 x 3 in a row; in the mask a car is class 2.
Annotated street(std::int64_t index) {
  Annotated street{.image = Image(40, 30)};
  Mask mask{40, 30, std::vector<std::uint8_t>(1200)};
  for (int y = 0; y < 30; ++y) std::fill_n(street.image.row(y), 160, std::uint8_t{0});
  for (int car = 0; car < index; ++car) {
    const int left = 2 + 9 * car;
    street.boxes.push_back({static_cast<float>(left), 10, static_cast<float>(left + 4), 13});
    street.labels.push_back(car % 2 == 0 ? 7 : 8);
    for (int y = 10; y < 13; ++y) {
      std::fill_n(street.image.row(y) + 4 * left, 16, std::uint8_t{255});
      std::fill_n(mask.values.begin() + 40 * y + left, 4, std::uint8_t{2});
    }
  }
  street.mask = std::move(mask);
  return street;
}

TEST(Annotated, BecomesTensorsOfItsOwn) {
  NamedTensors tensors;
  {
    const Annotated cars = street(2);
    tensors = tensors_of(cars);
  }

  ASSERT_EQ(tensors.size(), 4U);
  const at::Tensor& input = tensors[0].second;  // [3, 30, 40]
  EXPECT_EQ(input.sizes(), at::IntArrayRef({3, 30, 40}));
  EXPECT_EQ(input.sum().item<std::int64_t>(), 2 * 12 * 3 * 255);
  EXPECT_EQ(input[1][12][14].item<std::int64_t>(), 255);
  EXPECT_EQ(tensors[1].first, "mask");
  EXPECT_TRUE(at::equal(tensors[1].second == 2, input[0] == 255));
  EXPECT_TRUE(at::equal(tensors[2].second,
                        at::tensor({2.F, 10.F, 6.F, 13.F, 11.F, 10.F, 15.F, 13.F}).view({2, 4})));
  EXPECT_TRUE(at::equal(tensors[3].second, at::tensor({7, 8}, at::kLong)));
}

TEST(Annotated, WithoutBoxesHasNoneOfThem) {
  const NamedTensors tensors = tensors_of(street(0));

  EXPECT_EQ(tensors[2].second.sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(tensors[3].second.sizes(), at::IntArrayRef({0}));
}

/// Segmentation: every image with the class of each of its pixels, of one size.
class Streets : public NamedDataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 4; }
  [[nodiscard]] NamedTensors get(std::int64_t index, feed::Draws& random) const override {
    Annotated scene = street(index);
    joint_.apply(scene, random);
    const NamedTensors tensors = tensors_of(scene);
    return {tensors[0], {"target", tensors[1].second}};
  }

 private:
  JointTransforms joint_{{transforms::RandomResizedCrop(24), transforms::RandomHorizontalFlip()}};
};

TEST(Annotated, TrainsSegmentation) {
  for (const unsigned workers : {0U, 2U}) {
    DataLoader loader(Streets{}, Placement{},
                      {.batch_size = 4, .shuffle = false, .seed = 5, .num_workers = workers});

    const Batch batch = *loader.epoch(0).next();

    EXPECT_EQ(batch.input.sizes(), at::IntArrayRef({4, 3, 24, 24}));
    EXPECT_EQ(batch.target.sizes(), at::IntArrayRef({4, 24, 24}));
    EXPECT_EQ(batch.target[0].sum().item<std::int64_t>(), 0);
    // What is pure white lies inside a car, whatever was cut and turned.
    const at::Tensor white = batch.input.select(1, 0) == 255;
    EXPECT_GT(white.sum().item<std::int64_t>(), 0);
    EXPECT_TRUE(at::equal(at::logical_and(white, batch.target == 2), white));
  }
}

/// Detection: as many boxes as there are, behind one another, and which image each is of.
class Cars : public NamedDataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 4; }
  [[nodiscard]] NamedTensors get(std::int64_t index, feed::Draws& random) const override {
    Annotated scene = street(index);
    joint_.apply(scene, random);
    NamedTensors tensors = tensors_of(scene);
    tensors.erase(tensors.begin() + 1);  // the mask
    return tensors;
  }
  [[nodiscard]] NamedTensors collate(std::span<const NamedTensors> samples) const override {
    std::vector<at::Tensor> images;
    std::vector<at::Tensor> boxes;
    std::vector<at::Tensor> of;
    for (const NamedTensors& sample : samples) {
      of.push_back(at::full({sample[1].second.size(0)}, static_cast<std::int64_t>(images.size()),
                            at::kLong));
      images.push_back(sample[0].second);
      boxes.push_back(sample[1].second);
    }
    return {{"input", at::stack(images)}, {"boxes", at::cat(boxes)}, {"image", at::cat(of)}};
  }

 private:
  JointTransforms joint_{{transforms::RandomHorizontalFlip{.p = 1}}};
};

TEST(Annotated, TrainsDetection) {
  DataLoader loader(Cars{}, Placement{}, {.batch_size = 4, .shuffle = false, .num_workers = 2});

  const Batch batch = *loader.epoch(0).next();

  EXPECT_EQ(batch["boxes"].sizes(), at::IntArrayRef({6, 4}));
  EXPECT_TRUE(at::equal(batch["image"], at::tensor({1, 2, 2, 3, 3, 3}, at::kLong)));
  for (std::int64_t box = 0; box < 6; ++box) {
    const at::Tensor place = batch["boxes"][box].to(at::kLong);
    const at::Tensor inside =
        batch.input[batch["image"][box].item<std::int64_t>()]
            .slice(1, place[1].item<std::int64_t>(), place[3].item<std::int64_t>())
            .slice(2, place[0].item<std::int64_t>(), place[2].item<std::int64_t>());
    EXPECT_TRUE(at::equal(inside, at::full_like(inside, 255))) << box;
  }
}

}  // namespace
}  // namespace yoke::data
