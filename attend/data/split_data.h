#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/data/pairs.h"

namespace attend {

struct NodeGraph;

// The examples of data that says itself what each of them is for.
struct SplitData {
  std::vector<Example> train, valid, test;
  std::shared_ptr<const NodeGraph> graph = nullptr;  // whose nodes the sources are; null: of none
  std::vector<std::string> names = {};               // of its nodes, in their order
};

}  // namespace attend
