// Tests of all tables of choices together: every pair of choices from two tables occurs in a case.
#include <tuple>

#include "tests/kernels/choices.h"
#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace products_test {

const Shape kShapes[] = {
    {2, 4, 2, 59, 111, 17, 3},  {1, 2, 1, 129, 59, 33, 65}, {2, 1, 1, 3, 129, 2, 17},
    {2, 2, 2, 17, 17, 59, 111}, {1, 6, 3, 111, 2, 1, 1},    {3, 2, 1, 1, 59, 64, 64},
    {2, 2, 1, 70, 300, 16, 9},
};
const char* const kStorage[] = {"float", "double", "BFloat16", "Float16"};

// A case has one choice from each table.
enum Table { family, scope, bias, normaliser, storage, shape, layout, extra, kTables };
// extra: 1 dropout, 2 soft cap, 4 three threads, 8 one v for all heads
constexpr int kSizes[kTables] = {std::size(kFamilies),
                                 std::size(kScopes),
                                 std::size(kBiases),
                                 std::size(kNormalisers),
                                 std::size(kStorage),
                                 std::size(kShapes),
                                 3,
                                 16};
using Choice = std::array<int, kTables>;

class Pairs {
 public:
  Pairs() : missing_(size_t(kTables * kMost) * kTables * kMost, 0) {
    for (int t = 0; t < kTables; ++t) {
      for (int u = t + 1; u < kTables; ++u) {
        for (int i = 0; i < kSizes[t]; ++i) {
          for (int j = 0; j < kSizes[u]; ++j) missing_[at(t, i, u, j)] = 1, ++count_;
        }
      }
    }
  }

  int count() const { return count_; }

  // Number of pairs in this case that no earlier case had.
  int gain(const Choice& choice) const {
    int gain = 0;
    each(choice, [&](size_t pair) { gain += missing_[pair]; });
    return gain;
  }

  void cover(const Choice& choice) {
    count_ -= gain(choice);
    each(choice, [&](size_t pair) { missing_[pair] = 0; });
  }

 private:
  static constexpr int kMost = 16;

  static size_t at(int t, int i, int u, int j) {
    return size_t((t * kMost + i) * kTables + u) * kMost + j;
  }

  template <class Work>
  static void each(const Choice& choice, const Work& work) {
    for (int t = 0; t < kTables; ++t) {
      for (int u = t + 1; u < kTables; ++u) work(at(t, choice[t], u, choice[u]));
    }
  }

  std::vector<uint8_t> missing_;
  int count_ = 0;
};

// Adds the best of several random cases until no pair is missing.
std::vector<Choice> covering_cases() {
  std::vector<Choice> cases;
  std::mt19937 engine(1);
  Pairs pairs;
  while (pairs.count() > 0) {
    Choice best{};
    int maximum = -1;
    for (int trial = 0; trial < 50 || maximum == 0; ++trial) {
      Choice choice;
      for (int t = 0; t < kTables; ++t) choice[t] = static_cast<int>(engine() % kSizes[t]);
      const int gain = pairs.gain(choice);
      if (gain > maximum) maximum = gain, best = choice;
    }
    pairs.cover(best);
    cases.push_back(best);
  }
  return cases;
}

std::string name_of(const Choice& choice) {
  return std::string(kFamilies[choice[family]].name) + ", " + kScopes[choice[scope]].name + ", " +
         kBiases[choice[bias]].name + ", " + kNormalisers[choice[normaliser]].name + ", " +
         kStorage[choice[storage]] + ", shape " + std::to_string(choice[shape]) + ", layout " +
         std::to_string(choice[layout]) + ", extra " + std::to_string(choice[extra]);
}

template <class S>
void check(const Choice& choice) {
  const FamilyChoice& row = kFamilies[choice[family]];
  auto c = random_case<S>(kShapes[choice[shape]], row.family);
  ScopeArrays arrays;
  c.scope = kScopes[choice[scope]].make(c.shape, arrays);
  c.score.activation = row.activation;
  if (row.family == Family::squared_distance) c.score.scale /= 2;
  add_bias(c, kBiases[choice[bias]]);
  set_normaliser(kNormalisers[choice[normaliser]], c);
  if (choice[extra] & 1) c.dropout = {0.3, 99};
  if (choice[extra] & 2) c.score.soft_cap = 1.25;
  c.shared_vector = choice[extra] & 8;
  expect_all(c, {choice[extra] & 4 ? 3 : 1, Layout(choice[layout])});
}

class Products : public ::testing::TestWithParam<int> {};

TEST_P(Products, AreRight) {
  int cases = 0;
  for (const Choice& choice : covering_cases()) {
    if (choice[family] != GetParam()) continue;
    ++cases;
    SCOPED_TRACE(name_of(choice));
    switch (choice[storage]) {
      case 0:
        check<float>(choice);
        break;
      case 1:
        check<double>(choice);
        break;
      case 2:
        check<BFloat16>(choice);
        break;
      default:
        check<Float16>(choice);
    }
  }
  EXPECT_GE(cases, kSizes[extra]);
}

INSTANTIATE_TEST_SUITE_P(Families, Products, ::testing::Range(0, kSizes[family]),
                         [](const auto& info) { return kFamilies[info.param].name; });

}  // namespace products_test
}  // namespace attend::kernels::testing
