#include "attend/kernels/recurrent_gates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/kernels/run.h"

namespace attend::kernels::testing {
namespace recurrent_gates_test {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Numbers of this size, including the largest floats.
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

// Error of three consecutive sigmoids or tanhs, and of sums of similar numbers.
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
        // If r or a sum is large, its rounding error is large; the slope of tanh is at most 1.
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

// One unit: the next h and, for an LSTM, c; products in the order of its row.
struct Unit {
  std::vector<double> products;  // GRU: y_r y_z y_n u_r u_z u_n; LSTM: i f g o
  double before;                 // h of a GRU, c of an LSTM

  std::pair<double, double> next() const {
    const std::vector<double>& p = products;
    if (p.size() == 4) {
      const double c = sigmoid(p[1]) * before + sigmoid(p[0]) * std::tanh(p[2]);
      return {sigmoid(p[3]) * std::tanh(c), c};
    }
    const double n = std::tanh(p[2] + sigmoid(p[0] + p[3]) * p[5]);
    return {n + sigmoid(p[1] + p[4]) * (before - n), 0};
  }

  // The derivative of a h' + b c' with respect to `variable`, by central differences.
  double difference(double& variable, double a, double b) {
    constexpr double step = 1e-5;
    const double middle = variable;
    const auto value = [&](double x) {
      variable = x;
      const auto [h, c] = next();
      return a * h + b * c;
    };
    const double difference = (value(middle + step) - value(middle - step)) / (2 * step);
    variable = middle;
    return difference;
  }
};

// Unit k of a row.
Unit unit_of(const Cell& c, int64_t row, int64_t k) {
  Unit unit{{}, (c.gates == 3 ? c.state : c.cell)[static_cast<size_t>(row * c.hidden + k)]};
  for (int64_t gate = 0; gate < c.gates; ++gate) unit.products.push_back(c.gate(c.y, row, gate, k));
  for (int64_t gate = 0; gate < c.gates && c.gates == 3; ++gate)
    unit.products.push_back(c.gate(c.u, row, gate, k));
  return unit;
}

struct GateGradients {
  explicit GateGradients(const Cell& c)
      : state(drawn_numbers(c.rows * c.hidden, 1, 5)),
        cell(drawn_numbers(c.rows * c.hidden, 1, 6)),
        input(c.y.size()),
        product(c.y.size()),
        before(c.state.size()) {
    recurrent_gates_gradient({.rows = c.rows,
                              .hidden = c.hidden,
                              .from_input = c.y.data(),
                              .from_state = c.gates == 3 ? c.u.data() : nullptr,
                              .state = c.gates == 3 ? c.state.data() : nullptr,
                              .cell = c.gates == 3 ? nullptr : c.cell.data(),
                              .grad_state = state.data(),
                              .grad_cell = c.gates == 3 ? nullptr : cell.data(),
                              .grad_input = input.data(),
                              .grad_product = c.gates == 3 ? product.data() : nullptr,
                              .grad_before = before.data()});
  }

  std::vector<float> state, cell;  // inputs
  std::vector<float> input, product, before;
};

class GatesOf : public ::testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Cells, GatesOf, ::testing::Values(3, 4),
                         [](const auto& info) { return info.param == 3 ? "gru" : "lstm"; });

TEST_P(GatesOf, GradientsAreDifferences) {
  on_every_target([&] {
    for (const float size : {0.0F, 0.1F, 3.0F, 100.0F}) {
      const Cell c{3, 48, size, GetParam(), 48 * GetParam()};
      const GateGradients found(c);
      for (int64_t i = 0; i < c.rows * c.hidden; ++i) {
        const int64_t row = i / c.hidden, k = i % c.hidden;
        Unit unit = unit_of(c, row, k);
        const double a = found.state[static_cast<size_t>(i)];
        const double b = c.gates == 3 ? 0 : found.cell[static_cast<size_t>(i)];
        // Slopes are products of at most five sigmoids, their complements and given numbers; the
        // difference has an error of 1e-9.
        double largest = std::abs(unit.before);
        for (const double x : unit.products) largest = std::max(largest, std::abs(x));
        const double bound =
            1e-8 + few_roundings * (std::abs(a) + std::abs(b)) * (1 + largest) * (1 + largest);
        for (size_t n = 0; n < unit.products.size(); ++n) {
          const auto& from = n < static_cast<size_t>(c.gates) ? found.input : found.product;
          const size_t gate = n % static_cast<size_t>(c.gates);
          ASSERT_NEAR(from[static_cast<size_t>(row * c.stride) + gate * c.hidden + k],
                      unit.difference(unit.products[n], a, b), bound)
              << size << ' ' << n;
        }
        ASSERT_NEAR(found.before[static_cast<size_t>(i)], unit.difference(unit.before, a, b), bound)
            << size;
      }
    }
  });
}

TEST_P(GatesOf, GradientsOfTheLargestNumbersAreFinite) {
  on_every_target([&] {
    const Cell c{3, 16, 1e30F, GetParam(), 16 * GetParam()};
    const GateGradients found(c);
    for (const auto* all : {&found.input, &found.product, &found.before})
      for (const float each : *all) ASSERT_TRUE(std::isfinite(each));
  });
}

}  // namespace recurrent_gates_test
}  // namespace attend::kernels::testing
