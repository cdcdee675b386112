// Draws a problem from the input, runs both passes and compares them with the reference.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tests/kernels/choices.h"
#include "tests/kernels/reference.h"

namespace attend::kernels::testing {
namespace {

// Numbers from the input; zeros after its end.
class Draw {
 public:
  Draw(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  // 0 to most
  int64_t size(int64_t maximum) { return byte() % (maximum + 1); }
  bool flag() { return byte() % 2 == 1; }
  uint8_t byte() { return next_ < size_ ? data_[next_++] : uint8_t{0}; }
  const auto& of(const auto& table) { return table[byte() % std::size(table)]; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t next_ = 0;
};

// Sizes near the limits of vectors, panels and tiles.
int64_t draw_rows(Draw& draw) {
  constexpr int64_t kEdges[] = {0, 1, 2, 4, 5, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 129};
  return draw.flag() ? draw.of(kEdges) : draw.size(40);
}

Condition draw_condition(Draw& draw, const Shape& s, ScopeArrays& arrays) {
  switch (draw.byte() % 4) {
    case 0:
      return Window{draw.size(70), draw.size(70), draw.size(60) - 30, 1 + draw.size(3)};
    case 1:
      return Prefix{draw.size(140)};
    case 2:
      return GlobalRows{draw.size(70)};
    default:
      arrays.mask.resize(s.batch * s.queries * s.keys);
      for (uint8_t& x : arrays.mask) x = draw.byte() % 3;
      return DenseMask{arrays.mask.data(), s.queries * s.keys, 0, s.keys};
  }
}

Scope draw_scope(Draw& draw, const Shape& s, std::array<ScopeArrays, 10>& arrays) {
  if (draw.flag()) return draw.of(kScopes).make(s, arrays[0]);
  Scope scope;
  size_t next = 1;
  for (int64_t clauses = draw.size(3); clauses > 0; --clauses) {
    Clause& clause = scope.any_of.emplace_back();
    for (int64_t n = draw.size(3); n > 0; --n)
      clause.push_back(draw_condition(draw, s, arrays[next++]));
  }
  return scope;
}

template <class S>
Case<S> draw_case(Draw& draw, std::array<ScopeArrays, 10>& arrays) {
  const int64_t key_heads = 1 + draw.size(1), group = 1 + draw.size(2);
  const Shape s{draw.size(2),    key_heads * group, key_heads,    draw_rows(draw),
                draw_rows(draw), draw.size(35),     draw.size(35)};
  const FamilyChoice& family = draw.of(kFamilies);
  constexpr double kDeviations[] = {1, 0, 1e-40, 0.01, 3, 10, 30};
  auto c = random_case<S>(s, family.family, draw.of(kDeviations), 1 + draw.byte());
  if (family.family == Family::additive && c.vector.empty()) c.vector = {Compute<S>(1)};
  c.score.activation = family.activation;
  c.score.soft_cap = draw.flag() ? 2 : 0;
  c.score.scale *= draw.flag() ? -1 : 1;
  c.shared_vector = draw.flag();
  const NormaliserChoice& normaliser = draw.of(kNormalisers);
  set_normaliser(normaliser, c);
  c.scope = draw_scope(draw, s, arrays);
  const uint8_t biases = draw.byte();
  const bool dense = biases & 1, slopes = biases & 2, relative = biases & 4, gauss = biases & 8;
  add_bias(c, {"drawn",
               dense,
               slopes,
               relative,
               gauss,
               {bool(biases & 16), bool(biases & 32), bool(biases & 64)},
               bool(biases & 128),
               true});
  if (draw.flag()) c.dropout = {0.004 * draw.byte() / 1.03, draw.byte()};
  return c;
}

// Only finds errors of magnitude; the tests have precise bounds.
template <class T>
void expect_close(const std::vector<T>& got, const std::vector<double>& want, double size) {
  fuzz::expect(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    // beyond the largest number of Float16
    if (std::is_same_v<T, Float16> && std::abs(want[i]) > 65000) continue;
    const auto x = static_cast<double>(number(got[i]));
    if (std::isinf(want[i])) fuzz::expect(x == want[i]);
    if (std::isfinite(want[i])) fuzz::expect(std::abs(x - want[i]) <= size);
  }
}

double largest(const std::vector<double>& numbers) {
  double top = 0;
  for (const double x : numbers) {
    if (std::isfinite(x)) top = std::max(top, std::abs(x));
  }
  return top;
}

// Whether rounding cannot decide which keys top_k keeps.
bool is_decided(Normaliser normaliser, const NaiveResults<double>& want, double size) {
  return normaliser != Normaliser::top_k ||
         std::all_of(want.margin.begin(), want.margin.end(),
                     [size](double margin) { return margin > size; });
}

template <class S>
void compare(const Case<S>& c, Layout layout, int threads) {
  using C = Compute<S>;
  const Shape& s = c.shape;
  const PlacedCase<S> placed{c, layout};
  Placed<S> context(s.batch, s.heads, s.queries, s.value_depth, layout);
  std::vector<C> lse(c.rows()), unrounded(kIsHalf<S> ? c.rows() * s.value_depth : 0);
  attention_forward<S>(placed.problem(), {context.view(), lse.data(), pointer(unrounded)}, threads);
  const auto want = reference<double>(c);
  // Wide scores leave few digits to weights; a sparse weight may then enter or leave the support.
  const double wide = 1e-3 * (1 + largest(want.lse)) + (kIsHalf<S> ? 0.02 : 0);
  const bool decided = is_decided(c.normaliser, want, wide);
  if (decided) {
    expect_close(context.numbers(), want.context, wide * (1 + 30 * largest(want.context)));
    expect_close(lse, want.lse, wide * (1 + largest(want.lse)));
  }

  Placed<S> query(s.batch, s.heads, s.queries, s.depth, layout);
  Placed<S> key(s.batch, s.key_heads, s.keys, s.depth, layout);
  Placed<S> value(s.batch, s.key_heads, s.keys, s.value_depth, layout);
  std::vector<C> vector(s.heads * s.depth), dense(c.dense), slopes(c.slopes), sinks(c.sinks),
      relative(c.relative), centres(c.centres), widths(c.widths), alphas(c.alphas);
  const Placed<C> exact(kIsHalf<S> ? unrounded : converted<C>(context.numbers()), s.batch, s.heads,
                        s.queries, s.value_depth, layout);
  const Placed<S> grad(c.grad_context, s.batch, s.heads, s.queries, s.value_depth, layout);
  attention_backward<S>(
      placed.problem(), {exact.input(), lse.data(), grad.input(), c.grad_lse.data()},
      {query.view(), key.view(), value.view(), c.vector.empty() ? nullptr : vector.data(),
       pointer(dense), pointer(slopes), pointer(sinks), pointer(relative), pointer(centres),
       pointer(widths), nullptr, nullptr, nullptr, pointer(alphas)},
      threads);
  if (decided) expect_close(value.numbers(), want.value, wide * (1 + 30 * largest(want.value)));
  for (const auto* gradient :
       {&vector, &dense, &slopes, &sinks, &relative, &centres, &widths, &alphas}) {
    for (const C x : *gradient) fuzz::expect(!std::isnan(x));
  }
  for (const auto& rows : {query.numbers(), key.numbers()}) {
    for (const S& x : rows) fuzz::expect(!std::isnan(number(x)));
  }
  fuzz::expect(context.gaps_untouched() && query.gaps_untouched() && key.gaps_untouched() &&
               value.gaps_untouched());
}

template <class S>
void run(Draw& draw, Layout layout, int threads) {
  std::array<ScopeArrays, 10> arrays;
  compare(draw_case<S>(draw, arrays), layout, threads);
}

}  // namespace
}  // namespace attend::kernels::testing

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend::kernels;
  testing::Draw draw(data, size);
  const uint8_t storage = draw.byte();
  const auto layout = testing::Layout(draw.size(2));
  const int threads = 1 + static_cast<int>(draw.size(1));
  switch (storage % 4) {
    case 0:
      testing::run<float>(draw, layout, threads);
      break;
    case 1:
      testing::run<double>(draw, layout, threads);
      break;
    case 2:
      testing::run<BFloat16>(draw, layout, threads);
      break;
    default:
      testing::run<Float16>(draw, layout, threads);
  }
  return 0;
}
