#include "attend/explain/map_graph.h"

#include <cmath>
#include <optional>

namespace attend {
namespace {

// Source side or answer side: the level that its next map reads.
struct Side {
  std::optional<size_t> top = {};  // highest level so far
  int64_t layer = 0;               // layer of that level
};

class Builder {
 public:
  void add(const LayerMap& map) {
    const bool pooling = map.site.part == NetworkPart::pooling;
    const bool answers = map.site.reads_source || pooling;
    Side& below = answers || map.site.part != NetworkPart::decoder ? source_ : answer_;
    if (!below.top || graph_.levels[*below.top].tokens.size() != map.columns.size())
      below.top = level(&below == &source_ ? "source" : "answer", map.columns);
    const size_t lower = *below.top;
    Side& above = answers ? answer_ : below;
    // A decoder layer's self-attention and cross-attention share one level.
    if (!above.top || !map.site.reads_source || above.layer != map.site.layer)
      above = {level(map.name, map.rows), map.site.layer};
    link(map, *above.top, lower);
  }

  LayerGraph finish() { return std::move(graph_); }

 private:
  size_t level(const std::string& name, const std::vector<std::string>& tokens) {
    graph_.levels.push_back({name, tokens});
    return graph_.levels.size() - 1;
  }

  void link(const LayerMap& map, size_t upper, size_t lower) {
    const at::Tensor mean = map.weights.to(at::kDouble).mean(0).contiguous();
    const double* weights = mean.data_ptr<double>();
    for (int64_t from = 0; from < mean.size(0); ++from)
      for (int64_t to = 0; to < mean.size(1); ++to)
        if (const double weight = *weights++; std::isfinite(weight) && weight != 0)
          graph_.edges.push_back({upper, lower, from, to, weight});
  }

  LayerGraph graph_;
  Side source_, answer_;
};

}  // namespace

LayerGraph layer_graph(const std::vector<LayerMap>& maps) {
  Builder builder;
  for (const LayerMap& map : maps) builder.add(map);
  return builder.finish();
}

}  // namespace attend
