#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "bench/attention_bench.h"
#include "bench/kernel_inputs.h"
#include "bench/measure.h"
#include "bench/operator.h"

namespace attend::bench {
namespace {

// A random graph in the kernels' format: each of `nodes` queries sees about `degree` keys.
struct RandomGraph {
  std::vector<int64_t> offsets, keys;
  kernels::EdgesByKey by_key;

  RandomGraph(int64_t nodes, int64_t degree) {
    std::mt19937_64 engine(7);
    offsets.reserve(static_cast<size_t>(nodes) + 1);
    keys.reserve(static_cast<size_t>(nodes * degree));
    // Keys ascend by random steps, over the whole range.
    const int64_t step = 2 * nodes / degree;
    for (int64_t i = 0; i < nodes; ++i) {
      offsets.push_back(static_cast<int64_t>(keys.size()));
      for (int64_t j = random_below(engine, step); j < nodes; j += 1 + random_below(engine, step))
        keys.push_back(j);
    }
    offsets.push_back(static_cast<int64_t>(keys.size()));
    by_key = kernels::sorted_by_key(lists(), shape(nodes, 1));
  }

  static int64_t random_below(std::mt19937_64& engine, int64_t bound) {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(bound));
  }
  static kernels::Shape shape(int64_t nodes, int64_t depth) {
    return {1, 1, 1, nodes, nodes, depth, depth};
  }
  kernels::EdgeLists lists() const {
    kernels::EdgeLists lists;
    lists.offsets = offsets.data();
    lists.keys = keys.data();
    lists.edges = static_cast<int64_t>(keys.size());
    if (!by_key.offsets.empty()) lists.by_key = &by_key;
    return lists;
  }
  int64_t edges() const { return static_cast<int64_t>(keys.size()); }
};

// The passes of the kernels, and a gather of the rows of keys and values along the same edges.
class EdgeRuns {
 public:
  EdgeRuns(int64_t nodes, int64_t degree, int64_t depth)
      : graph_(nodes, degree),
        inputs_(RandomGraph::shape(nodes, depth), kernels::Family::dot,
                {{{kernels::Condition(graph_.lists())}}}),
        gather_(gather_run(graph_.keys, inputs_.problem.key.data, inputs_.problem.value.data, nodes,
                           depth)) {
    inputs_.forward(1);
  }

  Probe forward() {
    return seconds_of(1, [this] { inputs_.forward(1); });
  }
  Probe backward() {
    return seconds_of(1, [this] { inputs_.backward(1); });
  }
  Probe gather() const { return seconds_of(1, gather_); }
  const RandomGraph& graph() const { return graph_; }

 private:
  RandomGraph graph_;
  KernelInputs<float> inputs_;
  std::function<void()> gather_;
};

// Forward gathers a row of keys and of values per edge; backward also gathers a row of queries and
// of the contexts' gradients.
void run_gather_case(Bench& bench, int64_t nodes, int64_t degree, int64_t depth) {
  EdgeRuns runs(nodes, degree, depth);
  const Rounds rounds = take_turns({runs.forward(), runs.backward(), runs.gather()}, bench.seconds);
  bench.add("forward, times as long as the gather", rounds.ratio(0, 2), at_most(1.5));
  bench.add("backward, times as long as two gathers",
            rounds.median([](const Round& r) { return r[1] / (2 * r[2]); }), at_most(1.5));
  const auto edges = static_cast<double>(runs.graph().edges());
  const double bytes = edges * 2 * static_cast<double>(depth) * sizeof(float);
  bench.add("the gather, GB/s", rounds.median([=](const Round& r) { return bytes / r[2] * 1e-9; }));
  bench.add("forward, ns an edge",
            rounds.median([=](const Round& r) { return r[0] / edges * 1e9; }));
  bench.add("backward, ns an edge",
            rounds.median([=](const Round& r) { return r[1] / edges * 1e9; }));
}

void run_composed_edges_case(Bench& bench, int64_t nodes, int64_t degree, int64_t depth) {
  EdgeRuns runs(nodes, degree, depth);
  const OperatorRuns composed =
      gather_scatter_runs(runs.graph().offsets, runs.graph().keys, nodes, depth);
  const Rounds rounds =
      take_turns({runs.forward(), runs.backward(), seconds_of(1, composed.forward),
                  seconds_of(1, composed.forward_and_backward)},
                 bench.seconds);
  bench.add_over_composed("forward, ", rounds.ratio(2, 0), at_least(5));
  bench.add_over_composed(
      "both, ", rounds.median([](const Round& r) { return r[3] / (r[0] + r[1]); }), at_least(5));
}

// Compares ten times the edges between the same nodes: the memory of the rows stays as large.
void run_linear_case(Bench& bench) {
  constexpr int64_t nodes = 100000, depth = 32;
  EdgeRuns few(nodes, 10, depth), many(nodes, 100, depth);
  const Rounds rounds =
      take_turns({few.forward(), few.backward(), many.forward(), many.backward()}, bench.seconds);
  const double edges =
      static_cast<double>(many.graph().edges()) / static_cast<double>(few.graph().edges());
  const auto growth = [&](size_t more, size_t less) {
    return rounds.median([=](const Round& r) { return r[more] / r[less] / edges; });
  };
  bench.add("edges of the larger graph", static_cast<double>(many.graph().edges()));
  bench.add("forward, times as long an edge as of a tenth of the edges", growth(2, 0),
            at_most(1.1));
  bench.add("backward, times as long an edge as of a tenth of the edges", growth(3, 1),
            at_most(1.1));
}

}  // namespace

void add_edge_cases(std::vector<Case>& cases) {
  for (const auto& [nodes, degree] : {std::pair<int64_t, int64_t>{20000, 16}, {200000, 16}}) {
    cases.push_back({fmt::format("edges, {} nodes of {}, d=64, against a gather", nodes, degree),
                     nodes < 100000, [nodes = nodes, degree = degree](Bench& bench) {
                       run_gather_case(bench, nodes, degree, 64);
                     }});
  }
  cases.push_back({"edges, 20000 nodes of 16, d=64, against gather and scatter of LibTorch", true,
                   [](Bench& bench) { run_composed_edges_case(bench, 20000, 16, 64); }});
  cases.push_back({"edges, 10^6 and 10^7, d=32", false, run_linear_case});
}

}  // namespace attend::bench
