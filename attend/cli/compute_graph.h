#pragma once

#include <string>

#include "attend/mechanisms/compute_problem.h"

namespace attend {

// Writes the weights of the first batch element as a graph: GraphML, or for a name that ends in
// .dot the language of Graphviz. Undirected where the scores are symmetric, as when queries and
// keys share their projection. `labels` is a file with a line for each position; empty: numbers.
// Error when there are not as many queries as keys or labels.
void write_graph(const ComputeProblem& problem, const std::string& path, const std::string& labels);

}  // namespace attend
