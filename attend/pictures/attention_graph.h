#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/pictures/weight_grid.h"

namespace attend {

// A self-attention map as a weighted graph: tokens are nodes, and an edge from i to j means that i
// attended to j (as in Veličković et al. 2018).

struct GraphEdge {
  int64_t from = 0;  // query; in an undirected graph, from <= to
  int64_t to = 0;    // key
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
  double threshold = 0;  // keeps only edges of a larger weight; 0 or more
  int64_t largest = 0;   // edges per query, by weight, then by key; 0: all
  bool undirected = false;
};

// Makes a graph from a grid [T, T] of weights per head; row i has the weights of the query
// labels[i]. A token that attends to itself is an edge. Weights that are not finite make no
// edges.
//
// If queries and keys share their projection, scores are symmetric: one number says that i and j
// belong together. Each row's softmax still has a sum of its own, so that w_ij and w_ji differ. The
// undirected graph has one edge of weight (w_ij + w_ji) / 2 for both. The threshold applies to that
// weight, and the edge is kept if it is one of the largest at either end.
//
// Error if shapes do not match, or an option is out of range.
AttentionGraph attention_graph(const std::vector<std::string>& labels,
                               const std::vector<WeightGrid>& heads,
                               const GraphOptions& options = {});

// Both formats name nodes n0, n1, ... in the order of the labels. Labels show control characters
// and spaces at the ends as visible signs, and bytes that are not UTF-8 as U+FFFD. Weights have the
// digits of a float32. Edges name their head if there are several.

// A GraphML document (Brandes et al. 2002): node data "label", edge data "weight" and "head".
std::string graph_graphml(const AttentionGraph& graph);

// The language of Graphviz: node attribute label; edge attributes weight, penwidth (grows with the
// weight) and head. The graph requests a circular layout, which the caller of Graphviz may
// override.
std::string graph_dot(const AttentionGraph& graph);

}  // namespace attend
