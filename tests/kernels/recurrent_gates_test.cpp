#include "attend/kernels/recurrent_gates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Numbers of that size, the largest floats among them.
std::vector<float> drawn_numbers(int64_t count, float size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& each : numbers) each = normal(random);
  return numbers;
}

struct Cell {
  int64_t rows, hidden;
  float size;
  int64_t gates, stride = gates * hidden + 7;
  std::vector<float> y = drawn_numbers(rows * stride, size, 1),
                     u = drawn_numbers(rows * stride, size, 2),
                     state = drawn_numbers(rows * hidden, 1, 3),
                     cell = drawn_numbers(rows * hidden, 1, 4);

  double gate(const std::vector<float>& from, int64_t row, int64_t gate, int64_t k) const {
    return from[static_cast<size_t>(row * stride + gate * hidden + k)];
  }
};

// The error of a sigmoid or tanh, of which three follow each other, and of sums of numbers like it.
constexpr double few_roundings = 32 * std::numeric_limits<float>::epsilon();

std::vector<Cell> cells(int64_t gates) {
  std::vector<Cell> all;
  for (const int64_t hidden : {16, 48})
    for (const float size : {0.0F, 0.1F, 3.0F, 100.0F, 1e30F})
      all.push_back({3, hidden, size, gates});
  return all;
}

TEST(RecurrentGates, AreThoseOfAGru) {
  on_every_target([] {
    for (Cell& c : cells(3)) {
      const std::vector<float> before = c.state;
      recurrent_gates({.rows = c.rows,
                       .hidden = c.hidden,
                       .from_input = c.y.data(),
                       .from_state = c.u.data(),
                       .stride = c.stride,
                       .state = c.state.data()});
      for (int64_t i = 0; i < c.rows * c.hidden; ++i) {
        const int64_t row = i / c.hidden, k = i % c.hidden;
        const double r = sigmoid(c.gate(c.y, row, 0, k) + c.gate(c.u, row, 0, k));
        const double z = sigmoid(c.gate(c.y, row, 1, k) + c.gate(c.u, row, 1, k));
        const double inner = c.gate(c.y, row, 2, k) + r * c.gate(c.u, row, 2, k);
        // Where r or a sum is large, its rounding is; the slope of tanh is at most 1.
        const double size = std::abs(c.gate(c.y, row, 2, k)) + std::abs(c.gate(c.u, row, 2, k));
        if (std::abs(inner) < size * few_roundings) continue;
        const double n = std::tanh(inner);
        const double h = before[static_cast<size_t>(i)];
        ASSERT_NEAR(c.state[static_cast<size_t>(i)], n + z * (h - n),
                    few_roundings * (1 + std::abs(h)) * (1 + std::min(size, 300.0)))
            << c.size;
      }
    }
  });
}

TEST(RecurrentGates, AreThoseOfAnLstm) {
  on_every_target([] {
    for (Cell& c : cells(4)) {
      const std::vector<float> before = c.cell;
      recurrent_gates({.rows = c.rows,
                       .hidden = c.hidden,
                       .from_input = c.y.data(),
                       .stride = c.stride,
                       .state = c.state.data(),
                       .cell = c.cell.data()});
      for (int64_t i = 0; i < c.rows * c.hidden; ++i) {
        const int64_t row = i / c.hidden, k = i % c.hidden;
        const double last = before[static_cast<size_t>(i)];
        const double next = sigmoid(c.gate(c.y, row, 1, k)) * last +
                            sigmoid(c.gate(c.y, row, 0, k)) * std::tanh(c.gate(c.y, row, 2, k));
        const double bound = few_roundings * (2 + std::abs(last));
        ASSERT_NEAR(c.cell[static_cast<size_t>(i)], next, bound) << c.size;
        ASSERT_NEAR(c.state[static_cast<size_t>(i)],
                    sigmoid(c.gate(c.y, row, 3, k)) * std::tanh(next), 2 * bound)
            << c.size;
      }
    }
  });
}

}  // namespace
}  // namespace attend::kernels::testing
