#include <fmt/format.h>

#include <algorithm>

#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"

namespace attend::bench {
namespace {

using kernels::Family;
using kernels::Normaliser;
using Inputs = KernelInputs<float>;

constexpr int64_t kHeads = 4, kLength = 1024, kGrid = 32;  // 1024 positions, or a grid of 32 x 32
constexpr int64_t kReach = 128;  // limit of the relative tables; larger distances count as this one

struct Variant {
  std::string_view name;
  double bar;  // times the cost of plain attention; 0: none
  Family family;
  void (*apply)(Inputs&);
};

void set_relative(Inputs& inputs, int64_t rows, int64_t count, int64_t offset) {
  auto& bias = inputs.problem.bias;
  const int64_t row_stride = rows == 1 ? 0 : count;
  bias.relative = {inputs.random(kHeads * rows * count), 0, rows * count, row_stride};
  bias.relative_count = count;
  bias.relative_offset = offset;
  inputs.gradients.relative = inputs.random(kHeads * rows * count);
}

void set_grid(Inputs& inputs) {
  constexpr int64_t kSide = 2 * kGrid - 1;
  set_relative(inputs, 1, kSide * kSide, (kSide * kSide - 1) / 2);
  int64_t* positions = inputs.positions(kLength);
  for (int64_t i = 0; i < kLength; ++i) positions[i] = i / kGrid * kSide + i % kGrid;
  inputs.problem.bias.query_positions = inputs.problem.bias.key_positions = positions;
}

void set_gaussian(Inputs& inputs) {
  constexpr int64_t kRows = kHeads * kLength;
  float* centres = inputs.random(kRows);
  for (int64_t i = 0; i < kRows; ++i) centres[i] += static_cast<float>(i % kLength);
  float* widths = inputs.random(kRows);
  for (int64_t i = 0; i < kRows; ++i) widths[i] = 100 + 10 * widths[i];
  inputs.problem.bias.centres = centres;
  inputs.problem.bias.widths = widths;
  inputs.gradients.centres = inputs.random(kRows);
  inputs.gradients.widths = inputs.random(kRows);
}

void set_gates(Inputs& inputs) {
  constexpr int64_t kRows = kHeads * kLength;
  double* sums = inputs.doubles(kRows);
  for (int64_t i = 0; i < kRows; ++i)
    sums[i] = i % kLength == 0 ? 0 : sums[i - 1] - 0.001 * static_cast<double>(i % 7);
  inputs.problem.bias.query_sums = inputs.problem.bias.key_sums = sums;
  inputs.gradients.query_sums = inputs.doubles(kRows);
  inputs.gradients.key_sums = inputs.doubles(kRows);
}

constexpr double kPlain = 1.3, kDense = 1.6, kAbsolute = 3;

// Each includes the gradients of everything that it adds.
const Variant kVariants[] = {
    {"squared distance", kPlain, Family::squared_distance, [](Inputs&) {}},
    {"absolute distance", kAbsolute, Family::absolute_distance, [](Inputs&) {}},
    {"sigmoid", kPlain, Family::dot,
     [](Inputs& inputs) { inputs.problem.normaliser = Normaliser::sigmoid; }},
    {"no normaliser", 0, Family::dot,
     [](Inputs& inputs) { inputs.problem.normaliser = Normaliser::none; }},
    {"sparsemax", 0, Family::dot,
     [](Inputs& inputs) { inputs.problem.normaliser = Normaliser::sparsemax; }},
    {"entmax-1.5", 0, Family::dot,
     [](Inputs& inputs) { inputs.problem.normaliser = Normaliser::entmax15; }},
    {"entmax with alphas", 0, Family::dot,
     [](Inputs& inputs) {
       inputs.problem.normaliser = Normaliser::entmax;
       float* alphas = inputs.random(kHeads);
       std::fill_n(alphas, kHeads, 1.5F);
       inputs.problem.alphas = alphas;
       inputs.gradients.alphas = inputs.random(kHeads);
     }},
    {"softpick", 0, Family::dot,
     [](Inputs& inputs) { inputs.problem.normaliser = Normaliser::softpick; }},
    {"top 32", 0, Family::dot,
     [](Inputs& inputs) {
       inputs.problem.normaliser = Normaliser::top_k;
       inputs.problem.top = 32;
     }},
    {"stick-breaking", 0, Family::dot,
     [](Inputs& inputs) { inputs.problem.normaliser = Normaliser::stick_breaking; }},
    {"sink", kPlain, Family::dot,
     [](Inputs& inputs) {
       inputs.problem.sinks = inputs.random(kHeads);
       inputs.gradients.sinks = inputs.random(kHeads);
     }},
    {"soft cap", kPlain, Family::dot, [](Inputs& inputs) { inputs.problem.score.soft_cap = 20; }},
    {"dense bias", kDense, Family::dot,
     [](Inputs& inputs) {
       constexpr int64_t kHead = kLength * kLength;
       inputs.problem.bias.dense = {inputs.random(kHeads * kHead), 0, kHead, kLength};
       inputs.gradients.bias = inputs.random(kHeads * kHead);
     }},
    {"ALiBi slopes", kPlain, Family::dot,
     [](Inputs& inputs) {
       inputs.problem.bias.slopes = inputs.random(kHeads);
       inputs.gradients.slopes = inputs.random(kHeads);
     }},
    {"relative buckets (T5)", kPlain, Family::dot,
     [](Inputs& inputs) { set_relative(inputs, 1, 2 * kReach + 1, kReach); }},
    {"relative keys (Shaw)", kPlain, Family::dot,
     [](Inputs& inputs) { set_relative(inputs, kLength, 2 * kReach + 1, kReach); }},
    {"relative in two dimensions", kPlain, Family::dot, set_grid},
    {"Gaussian", kPlain, Family::dot, set_gaussian},
    {"forgetting (FoX)", kPlain, Family::dot, set_gates},
    {"weight dropout", 0, Family::dot,
     [](Inputs& inputs) {
       inputs.problem.dropout = {0.1, 1};
     }},
};

void run_variant(Bench& bench, const Variant& variant) {
  const kernels::Shape shape{1, kHeads, kHeads, kLength, kLength, 64, 64};
  Inputs plain(shape), other(shape, variant.family);
  variant.apply(other);
  if (other.checked_context() == plain.checked_context()) {
    fail("[bench] the kernels take no notice of it");
  }
  const auto both = [](Inputs& inputs) {
    return seconds_of(1, [&inputs] {
      inputs.forward(1);
      inputs.backward(1);
    });
  };
  const Rounds rounds = take_turns({both(plain), both(other)}, bench.seconds);
  bench.add("both, times the cost of plain scaled dot", rounds.ratio(1, 0),
            variant.bar > 0 ? std::optional(at_most(variant.bar)) : std::nullopt);
}

}  // namespace

void add_variant_cases(std::vector<Case>& cases) {
  for (const Variant& variant : kVariants) {
    cases.push_back({fmt::format("{}, 4 heads, d=64, T=1024", variant.name), true,
                     [&](Bench& bench) { run_variant(bench, variant); }});
  }
}

}  // namespace attend::bench
