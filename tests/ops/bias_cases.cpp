#include "tests/ops/bias_cases.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

namespace attend::reference {
namespace {

using at::Tensor;
using N = int64_t;

double number(const Tensor& x, std::initializer_list<N> place) {
  Tensor entry = x;
  for (const N index : place) entry = entry.select(0, index);
  return entry.item<double>();
}

// The published rule: half of the buckets are exact, the others logarithmic.
N bucket(N distance, N count, bool bidirectional, N maximum) {
  N offset = 0;
  if (bidirectional) {
    count /= 2;
    if (distance > 0) offset = count;
    distance = std::abs(distance);
  } else {
    distance = std::max<N>(-distance, 0);
  }
  const N exact = count / 2;
  if (distance < exact) return offset + distance;
  const double place = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(maximum) / static_cast<double>(exact));
  // 1e-6 prevents rounding down into the previous bucket at powers.
  const N grown = static_cast<N>(place * static_cast<double>(count - exact) + 1e-6);
  return offset + std::min(exact + grown, count - 1);
}

class Cases {
 public:
  Cases(const Sizes& sizes, N depth, uint64_t seed)
      : s_(sizes), depth_(depth), generator_(at::detail::createCPUGenerator(seed)) {}

  std::vector<BiasCase> all() {
    std::vector<BiasCase> cases = {dense({s_.batch, s_.heads, s_.queries, s_.keys}, "dense"),
                                   dense({s_.queries, s_.keys}, "dense_pairs"),
                                   dense({s_.heads, 1, s_.keys}, "dense_of_keys"),
                                   dense({s_.batch, 1, s_.queries, 1}, "dense_of_queries"),
                                   slopes(0),
                                   slopes(2),
                                   buckets_of_heads(),
                                   shared_buckets(),
                                   relative(false, 1),
                                   relative(true, 0),
                                   gaussians()};
    if (s_.queries == s_.keys && s_.keys > 0) cases.push_back(grid_of_positions());
    cases.push_back(sum("everything", {dense({s_.queries, s_.keys}, ""), slopes(0),
                                       buckets_of_heads(), gaussians()}));
    cases.push_back(
        sum("twice",
            {slopes(0), slopes(1), slopes(0), shared_buckets(), relative(false, 1), gaussians(),
             gaussians(), dense({s_.heads, 1, s_.keys}, ""), dense({s_.queries, s_.keys}, "")}));
    for (const bool of_entries : {false, true}) cases.push_back(slopes_by_entry(of_entries));
    cases.push_back(buckets_by_entry());
    cases.push_back(relative_by_entry());
    cases.push_back(sum("by_entry", {relative(false, 1), slopes_by_entry(true)}));
    for (const bool power : {false, true}) cases.push_back(kerple(power));
    for (const bool by_entry : {false, true}) cases.push_back(by_distance(by_entry));
    cases.push_back(sinusoids());
    cases.push_back(forgetting(0, false));
    cases.push_back(forgetting(-1, true));
    cases.push_back(shares_of_position(false));
    cases.push_back(shares_of_position(true));
    cases.push_back(sum("forget_twice", {forgetting(1, false), forgetting(0, false), slopes(0)}));
    return cases;
  }

 private:
  // Offset of the query positions of batch entry b.
  static N offset_of(N b) { return 3 * b - 2; }
  Tensor offsets() const { return 3 * at::arange(s_.batch, at::kLong) - 2; }

  BiasCase slopes_by_entry(bool of_entries) {
    const Tensor whole = random({s_.batch, s_.heads}).abs();
    const Tensor slopes = of_entries ? whole : whole[0].clone();
    return {of_entries ? "alibi_of_entries" : "alibi_by_entry",
            {slopes},
            [moved = offsets()](const Tensors& x) { return alibi(x[0], 1, moved); },
            [=](const Tensor&, N b, N h, N i, N j) {
              const Tensor own = of_entries ? slopes[b] : slopes;
              return -number(own, {h}) * static_cast<double>(std::abs(i + 1 + offset_of(b) - j));
            }};
  }

  BiasCase buckets_by_entry() {
    const Tensor table = random({s_.heads, 8});
    return {"buckets_by_entry",
            {table},
            [moved = offsets()](const Tensors& x) {
              return buckets({.table = x[0], .maximum_distance = 11, .offsets = moved});
            },
            [=](const Tensor&, N b, N h, N i, N j) {
              return number(table, {h, bucket(j - i - offset_of(b), 8, true, 11)});
            }};
  }

  BiasCase relative_by_entry() {
    constexpr N reach = 2;
    const Tensor table = random({s_.heads, 2 * reach + 1, depth_});
    return {"relative_keys_by_entry",
            {table},
            [moved = offsets()](const Tensors& x) { return relative_keys(x[0], 1, moved); },
            [=](const Tensor& query, N b, N h, N i, N j) {
              const N place = std::clamp(j - i - 1 - offset_of(b), -reach, reach) + reach;
              return (query[b][h][i] * table[h][place]).sum().item<double>();
            }};
  }

  BiasCase by_distance(bool by_entry) {
    constexpr N reach = 2;
    const Tensor table = random({s_.heads, 2 * reach, depth_});
    const Tensor moved = by_entry ? offsets() : Tensor();
    return {by_entry ? "content_to_position_by_entry" : "content_to_position",
            {table},
            [=](const Tensors& x) {
              return content_to_position({.table = x[0], .offset = 1, .offsets = moved});
            },
            [=](const Tensor& query, N b, N h, N i, N j) {
              const N own = by_entry ? offset_of(b) : 0;
              const N place = std::clamp<N>(i + 1 + own - j + reach, 0, 2 * reach - 1);
              return (query[b][h][i] * table[h][place]).sum().item<double>();
            }};
  }

  BiasCase kerple(bool power) {
    const Tensor p = random({s_.heads}).abs() + 0.2, a = random({s_.heads}).abs() + 0.1;
    return {power ? "kerple_power" : "kerple_log",
            {p, a},
            [power, moved = offsets()](const Tensors& x) {
              return power ? kerple_power(x[0], x[1], 1, moved) : kerple_log(x[0], x[1], 1, moved);
            },
            [=](const Tensor&, N b, N h, N i, N j) {
              const auto far = static_cast<double>(std::abs(i + 1 + offset_of(b) - j));
              const double own_p = number(p, {h}), own_a = number(a, {h});
              return power ? -own_a * std::pow(far, own_p) : -own_p * std::log(1 + own_a * far);
            }};
  }

  BiasCase sinusoids() {
    const Tensor factors = random({s_.heads});
    return {"sandwich",
            {factors},
            [](const Tensors& x) { return sandwich(x[0], 6, 2); },
            [=](const Tensor&, N, N h, N i, N j) {
              double sum = 0;
              for (int a = 1; a <= 3; ++a)
                sum += std::cos(static_cast<double>(i + 2 - j) * std::pow(1e4, -a / 3.0)) - 1;
              return number(factors, {h}) * sum;
            }};
  }

  // Adds up the gates between the two positions, one by one.
  BiasCase forgetting(N offset, bool by_entry) {
    const Tensor gates = random({s_.batch, s_.heads, s_.keys}) + 1;
    const N keys = s_.keys;
    return {by_entry ? "forget_by_entry" : "forget_" + std::to_string(offset),
            {gates},
            [=, moved = by_entry ? offsets() : Tensor()](const Tensors& x) {
              return forget(x[0], offset, moved);
            },
            [=](const Tensor&, N b, N h, N i, N j) {
              const N query =
                  std::clamp<N>(i + offset + (by_entry ? offset_of(b) : 0), -1, keys - 1);
              double sum = 0;
              for (N t = std::min(query, j) + 1; t <= std::max(query, j); ++t)
                sum -= std::log1p(std::exp(-number(gates, {b, h, t})));
              return sum;
            }};
  }

  BiasCase shares_of_position(bool shared) {
    constexpr N units = 3;
    const std::vector<N> heads = shared ? std::vector<N>{} : std::vector<N>{s_.heads};
    std::vector<N> weights = heads;
    weights.push_back(units);
    // Hidden units do not lie at the kink of the ReLU.
    const Tensor W_1 = random({units}) + 2, b_1 = random({units}) * 0.1 + 0.3;
    const Tensor W_2 = random(weights), b_2 = random(heads);
    const Tensor c = at::tensor(0.7, at::kDouble), threshold = at::tensor(2.4, at::kDouble);
    return {shared ? "fire_of_all_heads" : "fire",
            {W_1, b_1, W_2, b_2, c, threshold},
            [=, moved = shared ? offsets() : Tensor()](const Tensors& x) {
              return fire({x[0], x[1], x[2], x[3], x[4], x[5], 1, moved});
            },
            [=](const Tensor&, N b, N h, N i, N j) {
              const N query = i + 1 + (shared ? offset_of(b) : 0);
              const double far = std::log(0.7 * static_cast<double>(std::abs(query - j)) + 1);
              const double place = std::max(2.4, static_cast<double>(query));
              const double x = far / (std::log(0.7 * place + 1) + 1e-6);
              double sum = shared ? number(b_2, {}) : number(b_2, {h});
              for (N u = 0; u < units; ++u)
                sum += (shared ? number(W_2, {u}) : number(W_2, {h, u})) *
                       std::max(0.0, number(W_1, {u}) * x + number(b_1, {u}));
              return sum;
            }};
  }

  Tensor random(const std::vector<N>& shape) {
    return at::randn(shape, generator_, at::TensorOptions().dtype(at::kDouble));
  }

  BiasCase dense(const std::vector<N>& shape, const std::string& name) {
    const Tensor bias = random(shape);
    const Tensor whole = bias.expand({s_.batch, s_.heads, s_.queries, s_.keys});
    return {name,
            {bias},
            [](const Tensors& x) { return dense_bias(x[0]); },
            [=](const Tensor&, N b, N h, N i, N j) {
              return number(whole, {b, h, i, j});
            }};
  }

  BiasCase slopes(N offset) {
    const Tensor slopes = random({s_.heads}).abs();
    return {"alibi_" + std::to_string(offset),
            {slopes},
            [=](const Tensors& x) { return alibi(x[0], offset); },
            [=](const Tensor&, N, N h, N i, N j) {
              return -number(slopes, {h}) * static_cast<double>(std::abs(i + offset - j));
            }};
  }

  BiasCase buckets_of_heads() {
    const Tensor table = random({s_.heads, 8});
    return {"buckets",
            {table},
            [](const Tensors& x) { return buckets({.table = x[0], .maximum_distance = 11}); },
            [=](const Tensor&, N, N h, N i, N j) {
              return number(table, {h, bucket(j - i, 8, true, 11)});
            }};
  }

  BiasCase shared_buckets() {
    const Tensor table = random({6});
    return {"shared_buckets",
            {table},
            [](const Tensors& x) {
              return buckets(
                  {.table = x[0], .bidirectional = false, .maximum_distance = 20, .offset = 3});
            },
            [=](const Tensor&, N, N, N i, N j) {
              return number(table, {bucket(j - i - 3, 6, false, 20)});
            }};
  }

  BiasCase relative(bool of_heads, N offset) {
    constexpr N reach = 2;
    Tensor table = random({s_.heads, 2 * reach + 1, depth_});
    if (!of_heads) table = table[0].clone();
    return {of_heads ? "relative_keys_of_heads" : "relative_keys",
            {table},
            [=](const Tensors& x) { return relative_keys(x[0], offset); },
            [=, this_heads = of_heads](const Tensor& query, N b, N h, N i, N j) {
              const N place = std::clamp(j - i - offset, -reach, reach) + reach;
              const Tensor row = this_heads ? table[h][place] : table[place];
              return (query[b][h][i] * row).sum().item<double>();
            }};
  }

  BiasCase gaussians() {
    const Tensor centres = random({s_.batch, s_.heads, s_.queries}) * 3 + 2;
    const Tensor widths = random({s_.heads, s_.queries}).abs() + 1;
    return {"gaussian",
            {centres, widths},
            [](const Tensors& x) { return gaussian(x[0], x[1]); },
            [=](const Tensor&, N b, N h, N i, N j) {
              const double gap = static_cast<double>(j) - number(centres, {b, h, i});
              const double width = number(widths, {h, i});
              return -gap * gap / (2 * width * width);
            }};
  }

  BiasCase grid_of_positions() {
    N height = 1;
    for (N divisor = 1; divisor * divisor <= s_.keys; ++divisor)
      if (s_.keys % divisor == 0) height = divisor;
    const N width = s_.keys / height;
    const Tensor table = random({s_.heads, 2 * height - 1, 2 * width - 1});
    return {"grid",
            {table},
            [](const Tensors& x) { return grid(x[0]); },
            [=](const Tensor&, N, N h, N i, N j) {
              return number(table, {h, j / width - i / width + height - 1,
                                    j % width - i % width + width - 1});
            }};
  }

  static BiasCase sum(const std::string& name, const std::vector<BiasCase>& parts) {
    BiasCase total{name, {}, {}, {}};
    for (const BiasCase& part : parts)
      total.tensors.insert(total.tensors.end(), part.tensors.begin(), part.tensors.end());
    total.make = [parts](const Tensors& x) {
      Bias bias;
      auto next = x.begin();
      for (const BiasCase& part : parts) {
        const auto end = next + static_cast<int64_t>(part.tensors.size());
        bias = bias + part.make(Tensors(next, end));
        next = end;
      }
      return bias;
    };
    total.value = [parts](const Tensor& query, N b, N h, N i, N j) {
      double value = 0;
      for (const BiasCase& part : parts) value += part.value(query, b, h, i, j);
      return value;
    };
    return total;
  }

  Sizes s_;
  N depth_;
  at::Generator generator_;
};

}  // namespace

std::vector<BiasCase> bias_cases(const Sizes& sizes, int64_t depth, uint64_t seed) {
  return Cases(sizes, depth, seed).all();
}

}  // namespace attend::reference
