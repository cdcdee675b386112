#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/pictures/weight_grid.h"

namespace attend {

// A map of self-attention as a weighted graph: tokens are its nodes, and an edge from i to j says
// that i looked at j (Veličković et al. 2018 read attention so).

struct GraphEdge {
  int64_t from = 0;  // the query's place; in an undirected graph from <= to
  int64_t to = 0;    // the key's
  double weight = 0;
  int64_t head = 0;
};

struct AttentionGraph {
  std::vector<std::string> nodes;  // labels, UTF-8
  std::vector<GraphEdge> edges;    // by head, then from, then to
  bool directed = true;
  int64_t heads = 1;
  std::string title = {};  // may be empty
};

struct GraphOptions {
  double threshold = 0;  // edges of a larger weight alone; 0 or more
  int64_t largest = 0;   // the edges of each query's largest weights, of equal ones those of the
                         // first keys; 0: all
  bool undirected = false;
};

// A grid [T, T] for each head, whose row i holds what labels[i] looked at. A token that looks at
// itself is an edge; weights that are not finite are none.
//
// Where queries and keys share their projection, scores are symmetric: that i and j belong together
// is one number. Each row's softmax still divides it by a sum of its own, so that w_ij and w_ji
// differ. The undirected graph has one edge of the weight (w_ij + w_ji) / 2 for both, on which the
// threshold acts; it is kept when it is one of the largest of either end.
//
// Error when shapes do not fit, or an option is out of range.
AttentionGraph attention_graph(const std::vector<std::string>& labels,
                               const std::vector<WeightGrid>& heads,
                               const GraphOptions& options = {});

// Both name nodes n0, n1, ... in the order of the labels, which they show with control characters
// and spaces at the ends as visible signs and bytes that are no UTF-8 as U+FFFD. Weights have the
// digits of a float32. Edges say their head where there are several.

// A GraphML document (Brandes et al. 2002): node data "label", edge data "weight" and "head".
std::string graph_graphml(const AttentionGraph& graph);

// The language of Graphviz: node attribute label; edge attributes weight, penwidth (which grows
// with the weight) and head. Graphviz draws it in a circle, unless its caller chooses another
// layout.
std::string graph_dot(const AttentionGraph& graph);

}  // namespace attend
