#include "yoke/parallel/tensors.hpp"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace boxes {

struct Boxes {
  at::Tensor corners;
  std::string label;
};

template <class Visit>
void for_each_tensor(Boxes& boxes, Visit&& visit) {
  visit(boxes.corners);
}

}  // namespace boxes

namespace yoke::parallel {
namespace {

struct Output {
  at::Tensor logits;
  std::vector<at::Tensor> features;
  double temperature = 1.0;
  std::optional<at::Tensor> aux;
};

int count(auto& value) {
  int tensors = 0;
  visit_tensors(value, [&tensors](at::Tensor& tensor) {
    tensor = tensor + 1;
    ++tensors;
  });
  return tensors;
}

TEST(Tensors, AreFoundInWhatForwardsReturn) {
  const at::Tensor one = at::ones({1});
  std::tuple<at::Tensor, std::vector<at::Tensor>> pair{one, {one, one}};
  std::map<std::string, at::Tensor> map{{"a", one}, {"b", one}};
  Output output{one, {one, one}, 2.0, one};
  boxes::Boxes own{one, "cat"};
  c10::IValue value = c10::ivalue::Tuple::create(
      {c10::IValue(one), c10::IValue(3), c10::IValue(std::vector<at::Tensor>{one})});
  int number = 3;

  EXPECT_EQ(count(pair), 3);
  EXPECT_EQ(count(map), 2);
  EXPECT_EQ(count(output), 4);
  EXPECT_EQ(count(own), 1);
  EXPECT_EQ(count(value), 2);
  EXPECT_EQ(count(number), 0);
  EXPECT_DOUBLE_EQ(output.aux->item<double>(), 2.0) << "tensors are replaced in their places";
  EXPECT_DOUBLE_EQ(value.toTupleRef().elements()[0].toTensor().item<double>(), 2.0);
}

TEST(Tensors, RowsAreThoseOfTheFirstTensorWithADimension) {
  EXPECT_EQ(rows_of(3, at::ones({}), at::ones({5, 2}), at::ones({7})), 5);
  EXPECT_EQ(rows_of("text"), 1);
  EXPECT_EQ(rows_of(), 1);
}

}  // namespace
}  // namespace yoke::parallel
