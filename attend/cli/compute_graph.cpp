#include "attend/cli/compute_graph.h"

#include <ATen/core/grad_mode.h>

#include "attend/base/error.h"
#include "attend/base/file_formats.h"
#include "attend/base/files.h"
#include "attend/explain/weight_grids.h"
#include "attend/pictures/attention_graph.h"
#include "attend/pictures/graph_files.h"
#include "attend/text/text_lines.h"

namespace attend {
namespace {

using at::Tensor;

// [heads, T, T] of the first batch element.
Tensor first_maps(const Tensor& weights) {
  const Tensor first = weights.dim() > 2 ? weights[0] : weights;
  return first.dim() == 2 ? first.unsqueeze(0) : first;
}

std::vector<std::string> read_labels(const std::string& path, int64_t count) {
  std::vector<std::string> labels;
  if (path.empty()) {
    for (int64_t i = 0; i < count; ++i) labels.push_back(std::to_string(i));
    return labels;
  }
  labels = read_lines(path);
  if (static_cast<int64_t>(labels.size()) != count)
    fail("{}: has {} lines, the map has {} positions; give one label per line", path, labels.size(),
         count);
  return labels;
}

}  // namespace

void write_graph(const ComputeProblem& problem, const std::string& path,
                 const std::string& labels) {
  const GraphFile* file = format_of(graph_files(), path);
  if (!file) fail("--graph {}: the name must end in {}", in_quotes(path), listed_graph_files());
  const at::NoGradGuard no_gradients;
  const auto [query, key, value, spec] = attended(problem);
  const Tensor lse = attention(query, key, value, spec).lse;
  const Tensor maps = first_maps(attention_weights(query, key, lse, spec));
  if (maps.size(1) != maps.size(2))
    fail("--graph {}: {} queries attend to {} keys; a graph needs self-attention over one sequence",
         in_quotes(path), maps.size(1), maps.size(2));
  const Tensor scores = first_maps(attention_scores(query, key, spec));
  const bool undirected = scores.allclose(scores.transpose(1, 2));
  std::vector<WeightGrid> heads;
  for (const Tensor& map : maps.unbind()) heads.push_back(grid_of(map));
  const AttentionGraph graph =
      attention_graph(read_labels(labels, maps.size(1)), heads, {.undirected = undirected});
  write_file(path, file->write(graph));
}

}  // namespace attend
