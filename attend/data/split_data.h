#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/data/pairs.h"

namespace attend {

struct NodeGraph;

// Examples of data that specifies itself what each of them is for.
struct SplitData {
  std::vector<Example> train, valid, test;
  std::shared_ptr<const NodeGraph> graph = nullptr;  // graph that has the sources as nodes, if any
  std::vector<std::string> names = {};               // names of its nodes, in order
};

}  // namespace attend
