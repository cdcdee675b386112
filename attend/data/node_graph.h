#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/graph_config.h"
#include "attend/data/line_reader.h"
#include "attend/data/pairs.h"
#include "attend/data/split_data.h"

namespace attend {

// Nodes that have features and see their neighbours. Lists lie one behind the other: that of node i
// begins at its offset and ends at the next one; its numbers ascend.
struct NodeGraph {
  at::Tensor offsets;          // int64 [nodes + 1]
  at::Tensor neighbours;       // int64 [edges]: what each node sees, but for itself
  at::Tensor feature_offsets;  // int64 [nodes + 1]
  at::Tensor features;         // int64: from 0
  at::Tensor feature_values;   // float32, finite

  int64_t node_count() const { return offsets.size(0) - 1; }
  int64_t feature_count() const;  // the largest feature and those below it; 1 at least

  bool operator==(const NodeGraph& other) const;
};

// Features have numbers below this.
constexpr int64_t most_features = int64_t{1} << 24;

// The files of a folder, nodes.tsv and edges.tsv. The nodes whose answers are known are examples,
// the name of each its source and the class its target. A line of nodes.tsv is
//   node TAB split TAB class TAB features
// with split train, valid, test or -, a class of - or nothing where it is not known, and features
// between blanks, each a number from 0 (its value is 1) or number:value; a node without features
// may end behind its class. A line of edges.tsv is two nodes between a TAB or blanks, which see
// each other or, in a directed graph, of which the second sees the first.
// Errors name file and line: another number of fields, a node that is empty, has blanks, is spelled
// as a fixed token of vocabularies or is there twice, another split, a class that is missing where
// the split is not -, a feature that is no number below most_features, is there twice or has a
// value that is not finite, an edge to a node that is not there or to itself, one that is there
// twice, those of `check` for a node and its class, and those of PairReader for what is no text; or
// the file: no node. `bad` as read_pairs has it.
SplitData read_graph(const std::string& folder, const GraphConfig& config,
                     const PairCheck& check = {}, const Tell& tell = {}, int64_t* bad = nullptr);

// The same of the bytes of two files; the names are theirs in messages.
SplitData parse_graph(std::string_view nodes, const std::string& nodes_name, std::string_view edges,
                      const std::string& edges_name, const GraphConfig& config,
                      int64_t maximum_line = longest_line);

// A graph in a file of safetensors. What is read is held against the rules of NodeGraph; Error,
// naming the file, where it breaks one or is not of so many nodes.
void save_graph(const NodeGraph& graph, const std::string& path);
NodeGraph load_graph(const std::string& path, int64_t nodes);

}  // namespace attend
