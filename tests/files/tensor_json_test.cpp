#include "attend/files/tensor_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/files.h"

namespace attend {
namespace tensor_json_test {

using test::error_of;
using testing::HasSubstr;

at::Tensor read(const std::string& text) { return parse_tensor_json(text, "a.json"); }
std::string message(const std::string& text) {
  return error_of([&] { read(text); });
}

TEST(TensorJson, ReadsNestedLists) {
  EXPECT_TRUE(read("[[1, 2.5], [3, -4e1]]")
                  .equal(at::tensor({1., 2.5, 3., -40.}, at::kDouble).view({2, 2})));
  EXPECT_EQ(read("2.5").dim(), 0);
  EXPECT_EQ(read("[[[1]], [[2]]]").sizes(), (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(read("[]").sizes(), (std::vector<int64_t>{0}));
  EXPECT_EQ(read("[[], []]").sizes(), (std::vector<int64_t>{2, 0}));
}

TEST(TensorJson, TakesTheDtypeFromTheValues) {
  EXPECT_TRUE(read("[1, -2]").equal(at::tensor({1, -2}, at::kLong)));
  EXPECT_TRUE(read("[1, 2.0]").equal(at::tensor({1., 2.}, at::kDouble)));
  EXPECT_TRUE(read("[2.0, 1]").equal(at::tensor({2., 1.}, at::kDouble)));
  EXPECT_TRUE(read("[true, false]").equal(at::tensor({1, 0}).to(at::kBool)));
  EXPECT_EQ(read("[9007199254740993]").scalar_type(), at::kDouble);
  EXPECT_EQ(read("[18446744073709551616]").scalar_type(), at::kDouble);
  EXPECT_EQ(read("[]").scalar_type(), at::kDouble);
}

TEST(TensorJson, WritesNumbersThatAreNotFiniteAsStrings) {
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor tensor = at::tensor({infinity, -infinity, std::nan(""), 0.5}, at::kDouble);
  EXPECT_EQ(tensor_json(tensor).dump(), "[\"inf\",\"-inf\",\"nan\",0.5]");
  const at::Tensor back = read(tensor_json(tensor).dump());
  EXPECT_EQ(back[0].item<double>(), infinity);
  EXPECT_EQ(back[1].item<double>(), -infinity);
  EXPECT_TRUE(std::isnan(back[2].item<double>()));
  EXPECT_EQ(tensor_json(at::tensor({1, 2}, at::kLong)).dump(), "[1,2]");
  EXPECT_EQ(tensor_json(at::tensor({1, 0}).to(at::kBool)).dump(), "[true,false]");
}

TEST(TensorJson, WritesNumbersThatAreNegatedLater) {
  const at::Tensor negated = at::_neg_view(at::tensor({1., -2.}, at::kDouble));
  ASSERT_TRUE(negated.is_neg());
  EXPECT_EQ(tensor_json(negated).dump(), "[-1.0,2.0]");
}

TEST(TensorJson, ReadsBackWhatItWrites) {
  at::manual_seed(1);
  EXPECT_TRUE(rc::check([] {
    std::vector<int64_t> shape;
    for (int64_t axes = *rc::gen::inRange<int64_t>(0, 5); axes > 0; --axes)
      shape.push_back(*rc::gen::inRange<int64_t>(1, 4));
    at::Tensor tensor = at::randn(shape, at::kDouble);
    if (tensor.dim() > 1) tensor = tensor.transpose(0, 1);
    RC_ASSERT(read(tensor_json(tensor).dump()).equal(tensor));
  }));
}

TEST(TensorJson, RefusesWhatIsNoTensor) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "a.json:1:1: this is not JSON"},
      {"[1, 2", "this is not JSON"},
      {"[1]\n x", "a.json:2:2: this is not JSON"},
      {"[1,\n 2,\n null]", "a.json:3:"},
      {"[null]", "null is not a number; write \"nan\""},
      {"[\"one\"]", "'one' is not a number; only the strings inf, -inf and nan are"},
      {"{\"a\": 1}", "an object is not a tensor; write nested lists"},
      {"[[1, 2], [3]]", "a list of 1 is next to a list of 2"},
      {"[[1], 2]", "lists lie at different depths"},
      {"[1, [2]]", "a list is next to a number"},
      {"[[], [[]]]", "a list is next to a number"},
      {"[[[]], []]", "lists lie at different depths"},
      {"[1, true]", "true and false are mixed with numbers"},
      {"[[[[[[[[[1]]]]]]]]]", "more than 8 axes"},
      {"[NaN]", "this is not JSON"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(message(text), HasSubstr(expected)) << text;
    EXPECT_THAT(message(text), testing::StartsWith("a.json:")) << text;
  }
  EXPECT_THAT(message(std::string(1000000, '[')), HasSubstr("more than 8 axes"));
}

}  // namespace tensor_json_test
}  // namespace attend
