#include "attend/mechanisms/memory_addressing.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/ops/differences.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace memory_addressing_test {

using at::Tensor;
using reference::Tensors;
using Vector = std::vector<double>;

// Sums of up to some hundreds of products of numbers near 1.
constexpr double tolerance = 1e-13;

Vector vector_of(const Tensor& x) {
  const Tensor flat = x.detach().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

double at(const Tensor& x, const std::vector<int64_t>& place) {
  Tensor element = x;
  for (const int64_t i : place) element = element[i];
  return element.item<double>();
}

void expect_near(const Tensor& got, const Vector& wanted) {
  const Vector numbers = vector_of(got);
  ASSERT_EQ(numbers.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(numbers[i], wanted[i], tolerance) << i;
}

Tensor randn(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }
Tensor between_0_and_1(at::IntArrayRef shape) { return torch::rand(shape, torch::kDouble); }
Tensor distribution(at::IntArrayRef shape) { return randn(shape).softmax(-1); }
// The sum is below 1, as in the differentiable neural computer.
Tensor part_of_one(at::IntArrayRef shape) { return 0.8 * distribution(shape); }

struct Sizes {
  int64_t batch, heads, rows, width;
};

class Addressing : public testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override { torch::manual_seed(1); }
  const Sizes s = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Sizes, Addressing,
                         testing::Values(Sizes{1, 1, 1, 1}, Sizes{2, 3, 5, 4}, Sizes{3, 1, 59, 7},
                                         Sizes{1, 2, 111, 3}));

TEST_P(Addressing, ByContentIsTheSoftmaxOfScaledCosines) {
  const Tensor memory = randn({s.batch, s.rows, s.width}),
               keys = randn({s.batch, s.heads, s.width});
  const Tensor strengths = 5 * between_0_and_1({s.batch, s.heads});
  Vector wanted;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t r = 0; r < s.heads; ++r) {
      const Vector key = vector_of(keys[b][r]);
      Vector powers;
      for (int64_t i = 0; i < s.rows; ++i) {
        const Vector row = vector_of(memory[b][i]);
        double product = 0, key_square = 0, row_square = 0;
        for (size_t w = 0; w < row.size(); ++w) {
          product += key[w] * row[w];
          key_square += key[w] * key[w];
          row_square += row[w] * row[w];
        }
        powers.push_back(
            std::exp(at(strengths, {b, r}) * product / std::sqrt(key_square * row_square)));
      }
      double sum = 0;
      for (const double power : powers) sum += power;
      for (const double power : powers) wanted.push_back(power / sum);
    }
  }
  expect_near(address_by_content(memory, keys, strengths), wanted);
}

TEST_P(Addressing, InterpolatesShiftsAndSharpens) {
  const Tensor content = distribution({s.batch, s.heads, s.rows});
  const Tensor previous = distribution({s.batch, s.heads, s.rows});
  const Tensor gates = between_0_and_1({s.batch, s.heads});
  const int64_t reach = std::min<int64_t>(2, (s.rows - 1) / 2);
  const Tensor shifts = distribution({s.batch, s.heads, 2 * reach + 1});
  const Tensor sharpness = 1 + 3 * between_0_and_1({s.batch, s.heads});
  Vector gated, shifted, sharpened;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t r = 0; r < s.heads; ++r) {
      const double gate = at(gates, {b, r});
      Vector w_g;
      for (int64_t i = 0; i < s.rows; ++i)
        w_g.push_back(gate * at(content, {b, r, i}) + (1 - gate) * at(previous, {b, r, i}));
      Vector w_s(w_g.size(), 0.0);
      for (int64_t i = 0; i < s.rows; ++i) {
        for (int64_t by = -reach; by <= reach; ++by)
          w_s[static_cast<size_t>((i + by + s.rows) % s.rows)] +=
              w_g[static_cast<size_t>(i)] * at(shifts, {b, r, by + reach});
      }
      double sum = 0;
      for (const double w : w_s) sum += std::pow(w, at(sharpness, {b, r}));
      gated.insert(gated.end(), w_g.begin(), w_g.end());
      shifted.insert(shifted.end(), w_s.begin(), w_s.end());
      for (const double w : w_s) sharpened.push_back(std::pow(w, at(sharpness, {b, r})) / sum);
    }
  }
  const Tensor w_g = interpolate_weights(content, previous, gates);
  const Tensor w_s = shift_weights(w_g, shifts);
  expect_near(w_g, gated);
  expect_near(w_s, shifted);
  expect_near(sharpen_weights(w_s, sharpness), sharpened);
}

TEST_P(Addressing, ReadsErasesAndAdds) {
  const Tensor memory = randn({s.batch, s.rows, s.width});
  const Tensor weights = distribution({s.batch, s.heads, s.rows});
  const Tensor erase = between_0_and_1({s.batch, s.heads, s.width});
  const Tensor add = randn({s.batch, s.heads, s.width});
  Vector read, written;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t r = 0; r < s.heads; ++r) {
      for (int64_t w = 0; w < s.width; ++w) {
        double sum = 0;
        for (int64_t i = 0; i < s.rows; ++i) sum += at(weights, {b, r, i}) * at(memory, {b, i, w});
        read.push_back(sum);
      }
    }
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t w = 0; w < s.width; ++w) {
        double kept = at(memory, {b, i, w}), added = 0;
        for (int64_t r = 0; r < s.heads; ++r) {
          kept *= 1 - at(weights, {b, r, i}) * at(erase, {b, r, w});
          added += at(weights, {b, r, i}) * at(add, {b, r, w});
        }
        written.push_back(kept + added);
      }
    }
  }
  expect_near(read_rows(memory, weights), read);
  expect_near(erase_and_add(memory, weights, erase, add), written);
}

TEST_P(Addressing, KeepsUsageAndAllocatesTheLeastUsed) {
  const Tensor usage = between_0_and_1({s.batch, s.rows}), write = part_of_one({s.batch, s.rows});
  const Tensor read = distribution({s.batch, s.heads, s.rows});
  const Tensor free_gates = between_0_and_1({s.batch, s.heads});
  Vector psi, used, allocated;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<std::pair<double, size_t>> free_list;
    for (int64_t i = 0; i < s.rows; ++i) {
      double retained = 1;
      for (int64_t r = 0; r < s.heads; ++r)
        retained *= 1 - at(free_gates, {b, r}) * at(read, {b, r, i});
      const double u = at(usage, {b, i}), w = at(write, {b, i});
      psi.push_back(retained);
      used.push_back((u + w - u * w) * retained);
      free_list.emplace_back(used.back(), static_cast<size_t>(i));
    }
    std::sort(free_list.begin(), free_list.end());
    Vector a(free_list.size());
    double before = 1;
    for (const auto& [u, i] : free_list) {
      a[i] = (1 - u) * before;
      before *= u;
    }
    allocated.insert(allocated.end(), a.begin(), a.end());
  }
  const Tensor retained = retention(free_gates, read);
  const Tensor next = next_usage(usage, write, retained);
  expect_near(retained, psi);
  expect_near(next, used);
  expect_near(allocation(next), allocated);
}

// Three writes, so that links follow links.
TEST_P(Addressing, LinksRowsInTheOrderOfTheirWriting) {
  const size_t rows = static_cast<size_t>(s.rows);
  TemporalLinks links = no_links(s.batch, s.rows, torch::kDouble);
  std::vector<std::vector<Vector>> wanted_links(static_cast<size_t>(s.batch),
                                                std::vector<Vector>(rows, Vector(rows, 0.0)));
  std::vector<Vector> precedence(static_cast<size_t>(s.batch), Vector(rows, 0.0));
  for (int time = 0; time < 3; ++time) {
    const Tensor write = part_of_one({s.batch, s.rows});
    links = after_writing(links, write);
    for (size_t b = 0; b < precedence.size(); ++b) {
      const Vector w = vector_of(write[static_cast<int64_t>(b)]);
      double sum = 0;
      for (size_t i = 0; i < rows; ++i) {
        sum += w[i];
        for (size_t j = 0; j < rows; ++j) {
          double& link = wanted_links[b][i][j];
          link = i == j ? 0 : (1 - w[i] - w[j]) * link + w[i] * precedence[b][j];
        }
      }
      for (size_t i = 0; i < rows; ++i) precedence[b][i] = (1 - sum) * precedence[b][i] + w[i];
    }
  }
  const Tensor read = distribution({s.batch, s.heads, s.rows});
  const auto [forward, backward] = follow_links(links, read);
  for (size_t b = 0; b < precedence.size(); ++b) {
    const auto batch = static_cast<int64_t>(b);
    expect_near(links.precedence[batch], precedence[b]);
    for (int64_t i = 0; i < s.rows; ++i)
      expect_near(links.links[batch][i], wanted_links[b][static_cast<size_t>(i)]);
    for (int64_t r = 0; r < s.heads; ++r) {
      const Vector w = vector_of(read[batch][r]);
      Vector after(rows, 0.0), before(rows, 0.0);
      for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < rows; ++j) {
          after[i] += wanted_links[b][i][j] * w[j];
          before[i] += wanted_links[b][j][i] * w[j];
        }
      }
      expect_near(forward[batch][r], after);
      expect_near(backward[batch][r], before);
    }
  }
}

TEST_P(Addressing, GatesWritingAndMixesReading) {
  const Tensor allocated = part_of_one({s.batch, s.rows}),
               content = distribution({s.batch, s.rows});
  const Tensor allocate = between_0_and_1({s.batch}), write = between_0_and_1({s.batch});
  Vector gated;
  for (int64_t b = 0; b < s.batch; ++b) {
    const double g = at(allocate, {b});
    for (int64_t i = 0; i < s.rows; ++i)
      gated.push_back(at(write, {b}) * (g * at(allocated, {b, i}) + (1 - g) * at(content, {b, i})));
  }
  expect_near(allocate_or_match(allocated, content, allocate, write), gated);

  const Followed followed{part_of_one({s.batch, s.heads, s.rows}),
                          part_of_one({s.batch, s.heads, s.rows})};
  const Tensor of_content = distribution({s.batch, s.heads, s.rows});
  const Tensor modes = distribution({s.batch, s.heads, 3});
  Vector mixed;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t r = 0; r < s.heads; ++r) {
      for (int64_t i = 0; i < s.rows; ++i)
        mixed.push_back(at(modes, {b, r, 0}) * at(followed.backward, {b, r, i}) +
                        at(modes, {b, r, 1}) * at(of_content, {b, r, i}) +
                        at(modes, {b, r, 2}) * at(followed.forward, {b, r, i}));
    }
  }
  expect_near(mix_read_modes(followed, of_content, modes), mixed);
}

// The paper's bounds of the weights, over many steps of a machine with random gates.
TEST(AddressingProperties, WeightsAndLinksSumToAtMostOne) {
  torch::manual_seed(2);
  constexpr int64_t batch = 3, heads = 2, rows = 13;
  constexpr double one = 1 + 1e-12;  // 60 steps of sums, each with an error of some 1e-16
  TemporalLinks links = no_links(batch, rows, torch::kDouble);
  Tensor usage = torch::zeros({batch, rows}, torch::kDouble), write = usage;
  Tensor read = distribution({batch, heads, rows});
  for (int step = 0; step < 60; ++step) {
    usage = next_usage(usage, write, retention(between_0_and_1({batch, heads}), read));
    const Tensor allocated = allocation(usage);
    write = allocate_or_match(allocated, distribution({batch, rows}), between_0_and_1({batch}),
                              between_0_and_1({batch}));
    links = after_writing(links, write);
    read = mix_read_modes(follow_links(links, read), distribution({batch, heads, rows}),
                          distribution({batch, heads, 3}));
    for (const Tensor& weights :
         {allocated, write, links.precedence, read.flatten(0, 1), links.links.flatten(0, 1),
          links.links.transpose(1, 2).flatten(0, 1)}) {
      EXPECT_LE(weights.sum(-1).max().item<double>(), one);
      EXPECT_GE(weights.min().item<double>(), 0);
    }
    EXPECT_LE(usage.max().item<double>(), one);
    EXPECT_GE(usage.min().item<double>(), 0);
    EXPECT_EQ(links.links.diagonal(0, 1, 2).abs().max().item<double>(), 0);
  }
}

Tensor one_hot(int64_t row, int64_t rows) {
  Tensor weights = torch::zeros({1, 1, rows}, torch::kDouble);
  weights[0][0][row] = 1;
  return weights;
}

TEST(AddressingProperties, ShiftsGoRoundAndLinksLeadFromWriteToWrite) {
  const Tensor by_one = torch::tensor({{{0.0, 0.0, 1.0}}}, torch::kDouble);
  EXPECT_TRUE(torch::equal(shift_weights(one_hot(4, 5), by_one), one_hot(0, 5)));
  EXPECT_TRUE(torch::equal(shift_weights(one_hot(0, 5), by_one.flip({2})), one_hot(4, 5)));

  TemporalLinks links = no_links(1, 5, torch::kDouble);
  for (const int64_t row : {3, 0, 4}) links = after_writing(links, one_hot(row, 5)[0]);
  EXPECT_TRUE(torch::equal(follow_links(links, one_hot(3, 5)).forward, one_hot(0, 5)));
  EXPECT_TRUE(torch::equal(follow_links(links, one_hot(4, 5)).backward, one_hot(0, 5)));
  EXPECT_EQ(follow_links(links, one_hot(4, 5)).forward.sum().item<double>(), 0);
}

TEST(AddressingProperties, SharpensWhatWouldUnderflow) {
  const Tensor weights = torch::full({1, 1, 128}, 1.0 / 128);
  // (1 / 128)^40 is below the smallest float32.
  const Tensor sharp = sharpen_weights(weights, torch::full({1, 1}, 40.0));
  EXPECT_TRUE(torch::allclose(sharp, weights));
}

TEST(AddressingGradients, OfTheTuringMachine) {
  torch::manual_seed(3);
  const Tensor probe = randn({2, 5, 3}), read_probe = randn({2, 2, 3});
  const auto step = [&](const Tensors& x) {
    const Tensor content = address_by_content(x[0], x[1], x[2]);
    const Tensor moved = shift_weights(interpolate_weights(content, x[3], x[4]), x[5]);
    const Tensor weights = sharpen_weights(moved, x[6]);
    const Tensor written = erase_and_add(x[0], weights, x[7], x[8]);
    return (written * probe).sum() + (read_rows(written, weights) * read_probe).sum();
  };
  reference::expect_gradients(
      step,
      {randn({2, 5, 3}), randn({2, 2, 3}), 1 + between_0_and_1({2, 2}), distribution({2, 2, 5}),
       between_0_and_1({2, 2}), distribution({2, 2, 3}), 1 + between_0_and_1({2, 2}),
       between_0_and_1({2, 2, 3}), randn({2, 2, 3})},
      {"memory", "keys", "strengths", "previous", "gates", "shifts", "sharpness", "erase", "add"});
}

TEST(AddressingGradients, OfTheNeuralComputer) {
  torch::manual_seed(4);
  const Tensor write_probe = randn({2, 4}), read_probe = randn({2, 2, 4});
  const auto step = [&](const Tensors& x) {
    const Tensor usage = next_usage(x[0], x[1], retention(x[2], x[3]));
    const Tensor write = allocate_or_match(allocation(usage), x[4], x[5], x[6]);
    const TemporalLinks links = after_writing({x[7], x[8]}, write);
    const Tensor read = mix_read_modes(follow_links(links, x[3]), x[9], x[10]);
    return (write * write_probe).sum() + (links.precedence * write_probe).sum() +
           (read * read_probe).sum();
  };
  reference::expect_gradients(
      step,
      {between_0_and_1({2, 4}), part_of_one({2, 4}), between_0_and_1({2, 2}),
       distribution({2, 2, 4}), distribution({2, 4}), between_0_and_1({2}), between_0_and_1({2}),
       0.2 * between_0_and_1({2, 4, 4}), part_of_one({2, 4}), distribution({2, 2, 4}),
       distribution({2, 2, 3})},
      {"usage", "last write", "free gates", "last read", "content", "allocation gate", "write gate",
       "links", "precedence", "read content", "modes"});
}

TEST(AddressingErrors, SayWhatDoesNotFit) {
  const Tensor memory = torch::zeros({2, 5, 3}), weights = torch::zeros({2, 1, 5});
  const Tensor gates = torch::zeros({2, 1}), vectors = torch::zeros({2, 1, 3});
  expect_errors({
      {[&] {
         address_by_content(memory, torch::zeros({2, 1, 4}), gates);
       },
       "keys has shape [2, 1, 4]; it must have [2, 1, 3]"},
      {[&] { address_by_content(memory, vectors, torch::zeros({2})); },
       "strengths has shape [2]; it must have [2, 1]"},
      {[&] { interpolate_weights(weights, {}, gates); }, "previous has shape undefined"},
      {[&] {
         shift_weights(weights, torch::zeros({2, 1, 2}));
       },
       "2 shifts over 5 rows"},
      {[&] {
         shift_weights(weights, torch::zeros({2, 1, 7}));
       },
       "7 shifts over 5 rows"},
      {[&] {
         sharpen_weights(weights, torch::zeros({1, 1}));
       },
       "sharpness has shape [1, 1]"},
      {[&] {
         read_rows(memory, torch::zeros({2, 1, 4}));
       },
       "weights has shape [2, 1, 4]"},
      {[&] {
         erase_and_add(memory, weights, vectors, torch::zeros({2, 2, 3}));
       },
       "add has shape [2, 2, 3]"},
      {[&] {
         retention(torch::zeros({2, 2}), weights);
       },
       "free gates has shape [2, 2]"},
      {[&] {
         next_usage(torch::zeros({2, 5}), torch::zeros({2, 4}), torch::zeros({2, 5}));
       },
       "write weights has shape [2, 4]"},
      {[&] { allocation(weights); }, "usage has shape [2, 1, 5]; it must have 2 axes"},
      {[&] {
         after_writing(no_links(2, 5, {}), torch::zeros({2, 4}));
       },
       "write weights has shape [2, 4]"},
      {[&] {
         follow_links(no_links(2, 5, {}), torch::zeros({2, 1, 4}));
       },
       "read weights has shape [2, 1, 4]"},
      {[&] {
         mix_read_modes({weights, weights}, weights, torch::zeros({2, 1, 2}));
       },
       "modes has shape [2, 1, 2]"},
  });
}

}  // namespace memory_addressing_test
}  // namespace attend
