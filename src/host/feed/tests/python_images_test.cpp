// Our pixels beside Pillow's and torchvision's, in one run; image_peer.py is the other side.
//
//   feed_python_images_test PYTHON PEER

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "image_files.hpp"
#include "temporary_folder.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/feed/image_folder.hpp"
#include "yoke/feed/transforms.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using namespace transforms;

std::string python;  // set by main
std::string peer;

struct Case {
  std::string kind;
  std::string file;
  std::string expected;
  double tolerance = 0;
  std::vector<int> numbers;
};

template <class Value>
double largest_difference(const std::vector<Value>& ours, const std::string& theirs) {
  if (ours.size() * sizeof(Value) != theirs.size()) return INFINITY;
  std::vector<Value> expected(ours.size());
  std::memcpy(expected.data(), theirs.data(), theirs.size());
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(ours[i]) - expected[i]));
  }
  return largest;
}

class Pillow : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const auto result = core::run_child(
        {.command = {python, peer, folder_->path().string()}, .limit = std::chrono::seconds(100)});
    ASSERT_TRUE(result.succeeded()) << result.out << result.err;
    std::istringstream lines(core::read_file(*folder_ / "cases.txt"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Case next;
      words >> next.kind >> next.file >> next.expected >> next.tolerance;
      for (int number = 0; words >> number;) next.numbers.push_back(number);
      cases_.push_back(next);
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static File file(const std::string& name) {
    const std::string text = core::read_file(*folder_ / name);
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  static Image decoded(const std::string& name, const DecodeOptions& options) {
    const File bytes = file(name);
    ImageDecoder decoder(options);
    Image image;
    decoder.open(bytes);
    decoder.read(image);
    return image;
  }

  // `ours` makes the pixels of a case; returns how many cases of the kind there were.
  template <class Ours>
  static int compare(const std::string& kind, const Ours& ours) {
    int count = 0;
    for (const Case& next : cases_) {
      if (next.kind != kind) continue;
      const double difference =
          largest_difference(ours(next), core::read_file(*folder_ / next.expected));
      EXPECT_LE(difference, next.tolerance) << kind << ' ' << next.file << ' ' << count;
      ++count;
    }
    return count;
  }

  static Transforms pipeline(const std::string& name) {
    static const std::map<std::string, std::vector<Step>> kPipelines{
        {"train", {RandomResizedCrop{.height = 96}, RandomHorizontalFlip{}}},
        {"eval", {Resize{.size = 128}, CenterCrop{.height = 112}}},
        {"padded", {Resize{.size = 50}, CenterCrop{.height = 77}}},
        {"cifar",
         {Resize{.size = 40, .width = 44}, RandomCrop{.height = 32, .padding = 4},
          RandomVerticalFlip{}}},
        {"jitter",
         {CenterCrop{.height = 64}, ColorJitter{.brightness = around_one(0.4),
                                                .contrast = around_one(0.4),
                                                .saturation = around_one(0.4),
                                                .hue = Interval{-0.1, 0.1}}}},
        {"randaugment",
         {CenterCrop{.height = 90}, RandomHorizontalFlip{}, RandAugment{.num_ops = 3}}},
        {"floats", {RandomResizedCrop{.height = 64}, Normalize{}}}};
    return Transforms(kPipelines.at(name), name == "floats" ? PixelLayout::chw : PixelLayout::hwc);
  }

  template <class Value>
  static std::vector<Value> transformed(const Case& next) {
    const Transforms transforms = pipeline(next.kind);
    std::vector<Value> row(transforms.bytes() / sizeof(Value));
    const File bytes = file(next.file);
    TransformWorkspace workspace;
    Draws draws({.seed = 7 + (std::uint64_t{1} << 40), .epoch = 3, .index = next.numbers[0]});
    transforms.apply(bytes, draws, workspace, std::as_writable_bytes(std::span(row)));
    return row;
  }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline std::vector<Case> cases_;
};

TEST_F(Pillow, DecodesToTheSamePixels) {
  EXPECT_GE(compare("decode", [](const Case& next) { return rgb(decoded(next.file, {})); }), 20);
}

TEST_F(Pillow, TurnsUprightWhatWeTurnUpright) {
  const int count = compare(
      "upright", [](const Case& next) { return rgb(decoded(next.file, {.exif = Exif::apply})); });
  EXPECT_EQ(count, 8);
}

TEST_F(Pillow, B047ResizesPartsOfAPhotoWithin1) {
  const Image photo = decoded("photo.jpg", {});
  Resizer resizer;
  const int count = compare("resize", [&](const Case& next) {
    const auto& n = next.numbers;
    Image out;
    resizer.resize(
        photo, {n[0], n[1], n[2], n[3]},
        {.width = n[4], .height = n[5], .interpolation = static_cast<Interpolation>(n[6])}, out);
    return rgb(out);
  });
  EXPECT_EQ(count, 75);
}

TEST_F(Pillow, TorchvisionsTransformsOnTheSameRandomNumbersGiveTheSamePixels) {
  for (const char* name : {"train", "eval", "padded", "cifar", "jitter"}) {
    EXPECT_GE(compare(name, transformed<std::uint8_t>), 1) << name;
  }
  EXPECT_EQ(compare("randaugment", transformed<std::uint8_t>), 100);  // all 14 changes, by lot
  EXPECT_EQ(compare("floats", transformed<float>), 30);
}

TEST_F(Pillow, TorchvisionsImageFolderHasTheSameOrderAndLabels) {
  std::istringstream lines(core::read_file(*folder_ / "samples.txt"));
  const ImageFolder ours(*folder_ / "tree");
  std::int64_t index = 0;
  for (std::string line; std::getline(lines, line); ++index) {
    const std::size_t space = line.find(' ');
    ASSERT_LT(index, ours.size());
    EXPECT_EQ(ours.origin(index), line.substr(space + 1));
    EXPECT_EQ(std::to_string(ours.label(index)), line.substr(0, space));
  }
  EXPECT_EQ(index, ours.size());
}

}  // namespace
}  // namespace yoke::feed

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return 2;
  yoke::feed::python = argv[1];
  yoke::feed::peer = argv[2];
  if (!std::filesystem::exists(argv[1])) {
    std::printf("no Python with torchvision at %s: run tools/setup --full\n", argv[1]);
    const char* required = std::getenv("YOKE_REQUIRE_FULL");
    return required != nullptr && std::string(required) == "1" ? 1 : 77;
  }
  return RUN_ALL_TESTS();
}
