#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/graph_config.h"
#include "attend/data/pairs.h"
#include "attend/data/split_data.h"
#include "attend/text/line_reader.h"

namespace attend {

// A graph of nodes with features; each node sees its neighbours. Lists are concatenated: the list
// of node i begins at its offset and ends at the next one. The numbers in a list ascend.
struct NodeGraph {
  at::Tensor offsets;          // int64 [nodes + 1]
  at::Tensor neighbours;       // int64 [edges]: nodes that each node sees, without itself
  at::Tensor feature_offsets;  // int64 [nodes + 1]
  at::Tensor features;         // int64, from 0
  at::Tensor feature_values;   // float32, finite

  int64_t node_count() const { return offsets.size(0) - 1; }
  int64_t feature_count() const;  // the largest feature + 1; at least 1

  bool operator==(const NodeGraph& other) const;
};

// Exclusive upper bound of feature numbers.
constexpr int64_t max_features = int64_t{1} << 24;

// Reads the files nodes.tsv and edges.tsv of a folder. Nodes with a known answer are examples: the
// name is the source, the class the target. A line of nodes.tsv is
//   node TAB split TAB class TAB features
// with split train, valid, test or -. The class is - or empty if unknown. Features are separated by
// blanks, each a number from 0 (its value is 1) or number:value; the line of a node without
// features may end after the class. A line of edges.tsv is two nodes with a TAB or blanks between.
// Both see each other; in a directed graph, only the second sees the first.
// Errors name file and line: another number of fields; a node that is empty, has blanks, is spelled
// like a fixed token of vocabularies or is a duplicate; another split; a missing class if the split
// is not -; a feature that is not a number below max_features, is a duplicate or has a value that
// is not finite; an edge to a missing node or from a node to itself; a duplicate edge; errors of
// `check` for a node and its class; errors of PairReader on invalid text. Error, naming the file,
// on a graph without nodes: the error of its first line, if it has lines. `bad` as in read_pairs.
SplitData read_graph(const std::string& folder, const GraphConfig& config,
                     const PairCheck& check = {}, const Tell& tell = {}, int64_t* bad = nullptr);

// Parses the bytes of the two files; messages call them by the given names.
SplitData parse_graph(std::string_view nodes, const std::string& nodes_name, std::string_view edges,
                      const std::string& edges_name, const GraphConfig& config,
                      int64_t maximum_line = longest_line);

// Write and read a graph as a safetensors file. load_graph validates it: Error, naming the file, if
// it violates a rule of NodeGraph or has another number of nodes.
void save_graph(const NodeGraph& graph, const std::string& path);
NodeGraph load_graph(const std::string& path, int64_t nodes);

}  // namespace attend
