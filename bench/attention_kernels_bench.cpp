// Times of the attention kernels on one thread against the multiply-add peak of the same core,
// measured in the same run. Each line: the median of the runs, and the best in brackets.
// Arguments: dot, additive or a substring of a case's name; none runs all.

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "attend/kernels/attention.h"
#include "bench/peak.h"

namespace {

using namespace attend::kernels;

struct Times {
  double median, best;
};

// One thread is timed by the processor time it used, so that a busy machine does not count; more
// threads by the clock on the wall.
double now(int threads) {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

Times time_runs(int threads, const std::function<void()>& run) {
  std::vector<double> seconds;
  double total = 0;
  run();
  while (seconds.size() < 3 || (total < 0.3 && seconds.size() < 200)) {
    const double start = now(threads);
    run();
    seconds.push_back(now(threads) - start);
    total += seconds.back();
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds[0]};
}

struct Data {
  Shape shape;
  std::vector<float> query, key, value, vector, context, lse, grad_context;
  std::vector<float> grad_query, grad_key, grad_value, grad_vector;
  Problem<float> problem;

  Data(const Shape& s, Family family, const Scope& scope) : shape(s) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& to, int64_t count) {
      to.resize(count);
      for (float& x : to) x = normal(engine);
    };
    const int64_t rows = s.batch * s.heads * s.queries, keys = s.batch * s.key_heads * s.keys;
    fill(query, rows * s.depth);
    fill(key, keys * s.depth);
    fill(value, keys * s.value_depth);
    fill(vector, s.depth);
    fill(grad_context, rows * s.value_depth);
    context.resize(rows * s.value_depth);
    lse.resize(rows);
    grad_query.resize(query.size());
    grad_key.resize(key.size());
    grad_value.resize(value.size());
    grad_vector.resize(s.heads * s.depth);
    const double scale = family == Family::dot ? 1 / std::sqrt(double(s.depth)) : 1.0;
    problem.shape = s;
    problem.score = {family, scale, vector.data(), 0};
    problem.scope = scope;
    problem.query = contiguous<const float>(query.data(), s.heads, s.queries, s.depth);
    problem.key = contiguous<const float>(key.data(), s.key_heads, s.keys, s.depth);
    problem.value = contiguous<const float>(value.data(), s.key_heads, s.keys, s.value_depth);
  }

  void forward(int threads) {
    attention_forward<float>(
        problem,
        {contiguous(context.data(), shape.heads, shape.queries, shape.value_depth), lse.data()},
        threads);
  }

  void backward(int threads) {
    const auto rows = [&](auto* data) {
      return contiguous(data, shape.heads, shape.queries, shape.value_depth);
    };
    attention_backward<float>(
        problem,
        {rows(static_cast<const float*>(context.data())), lse.data(),
         rows(static_cast<const float*>(grad_context.data())), nullptr},
        {contiguous(grad_query.data(), shape.heads, shape.queries, shape.depth),
         contiguous(grad_key.data(), shape.key_heads, shape.keys, shape.depth),
         contiguous(grad_value.data(), shape.key_heads, shape.keys, shape.value_depth),
         grad_vector.data()},
        threads);
  }
};

double g_peak = 0;
const char* g_filter = "";

// operations: of the full problem, multiply-adds counted as two.
void report(const std::string& name, double operations, double triples, const Times& t) {
  const double clock = g_peak / 32;  // cycles a second when a cycle does 16 multiply-adds
  std::printf("%-44s %9.3f ms  %5.1f %% of peak (%5.1f %%)", name.c_str(), t.median * 1e3,
              100 * operations / t.median / g_peak, 100 * operations / t.best / g_peak);
  if (triples > 0) {
    std::printf("  %.3f cycles a triple (%.3f)", t.median * clock / triples,
                t.best * clock / triples);
  }
  std::printf("\n");
  std::fflush(stdout);
}

bool wanted(const std::string& name) { return name.find(g_filter) != std::string::npos; }

void run_case(const std::string& name, const Shape& s, Family family, const Scope& scope,
              int threads = 1) {
  const std::string forward = name + " forward", backward = name + " backward";
  if (!wanted(forward) && !wanted(backward)) return;
  Data data(s, family, scope);
  const double pairs = double(s.batch) * s.heads * s.queries * s.keys;
  const double triples = family == Family::additive ? pairs * s.depth : 0;
  data.forward(threads);
  if (wanted(forward)) {
    report(forward, 2 * pairs * (s.depth + s.value_depth), triples,
           time_runs(threads, [&] { data.forward(threads); }));
  }
  if (wanted(backward)) {
    report(backward, 2 * pairs * (3 * s.depth + 2 * s.value_depth), triples,
           time_runs(threads, [&] { data.backward(threads); }));
  }
}

void run_target() {
  g_peak = multiply_add_peak();
  std::printf("peak %.1f GFLOP/s\n", g_peak / 1e9);
  for (const int64_t length : {512, 1024, 2048, 4096, 8192}) {
    const std::string tail = " T=" + std::to_string(length);
    run_case("dot d=64" + tail, {1, 1, 1, length, length, 64, 64}, Family::dot, {});
    if (length <= 4096) {
      run_case("dot d=128" + tail, {1, 1, 1, length, length, 128, 128}, Family::dot, {});
      run_case("causal dot d=64" + tail, {1, 1, 1, length, length, 64, 64}, Family::dot, causal());
    }
  }
  for (const int64_t length : {256, 1024}) {
    run_case("additive d=128 T=" + std::to_string(length), {1, 1, 1, length, length, 128, 128},
             Family::additive, {});
  }
  const Scope window{{{Window{.left = 256, .right = 256}}}};
  for (const int64_t length : {4096, 16384, 65536}) {
    run_case("window 256 dot d=64 T=" + std::to_string(length), {1, 1, 1, length, length, 64, 64},
             Family::dot, window);
  }
  run_case("decode dot 1 query 8192 keys 8 heads d=64", {1, 8, 8, 1, 8192, 64, 64}, Family::dot,
           {});
  run_case("decode additive 1 query 100 keys batch 64 d=128", {64, 1, 1, 1, 100, 128, 128},
           Family::additive, {});
  run_case("threads=2 dot d=64 T=4096", {1, 1, 1, 4096, 4096, 64, 64}, Family::dot, {}, 2);
  for (const int64_t length : {16, 32, 64}) {
    for (const int64_t depth : {32, 64}) {
      run_case("short dot T=" + std::to_string(length) + " d=" + std::to_string(depth),
               {64, 4, 4, length, length, depth, depth}, Family::dot, {});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_filter = argv[1];
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const std::string name = hwy::TargetName(target);
    if (name != "AVX3" && name != "AVX2" && name != "NEON") continue;
    if (argc > 2 && name != argv[2]) continue;
    hwy::SetSupportedTargetsForTest(target);
    std::printf("== %s\n", name.c_str());
    run_target();
  }
}
