#include <unordered_set>

#include "attend/data/node_graph.h"
#include "tests/fuzz/fuzz.h"

// The nodes, a line "---", and the edges.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string_view input = fuzz::text(data, size);
    constexpr std::string_view between = "---\n";
    const size_t place = input.find(between);
    const std::string_view nodes = input.substr(0, place);
    const std::string_view edges =
        place == std::string_view::npos ? "" : input.substr(place + between.size());
    for (const bool directed : {false, true}) {
      const SplitData read = parse_graph(nodes, "input", edges, "input", {.directed = directed});
      const NodeGraph& graph = *read.graph;
      const std::unordered_set<std::string> names(read.names.begin(), read.names.end());
      fuzz::expect(names.size() == read.names.size());
      fuzz::expect(graph.node_count() == std::ssize(read.names));
      fuzz::expect(graph.neighbours.size(0) == 0 ||
                   graph.neighbours.max().item<int64_t>() < graph.node_count());
      fuzz::expect(graph.features.size(0) == graph.feature_values.size(0));
      for (const auto* part : {&read.train, &read.valid, &read.test})
        for (const Example& example : *part) fuzz::expect(names.contains(example.source));
    }
  });
}
