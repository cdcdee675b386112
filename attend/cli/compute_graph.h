#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// Writes the weights of the first batch element as a graph: GraphML, or Graphviz for a name ending
// in .dot. The graph is undirected if the scores are symmetric, e.g. if queries and keys share
// their projection. `labels`: file with one line per position; empty: numbers. Error if the number
// of queries differs from the number of keys or of labels.
void write_graph(const ComputeProblem& problem, const std::string& path, const std::string& labels);

}  // namespace attend
