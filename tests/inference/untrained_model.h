#pragma once

#include <torch/utils.h>

#include <string>
#include <vector>

#include "attend/models/new_pair_model.h"
#include "tests/models/networks.h"

namespace attend::test {

// A small untrained model of characters, in memory.
inline PairModel untrained_model(const std::string& type) {
  const std::vector<Example> examples = {{"cab", {"K"}}, {"bad", {"B"}}, {"dab", {"K"}}};
  ModelConfig config =
      SomeNetwork{type, {"model.maximum_source_length=6", "model.context=16"}}.config();
  TextConfig text = config.row().text;
  text.source_units = "char";
  if (config.row().answers->is_text()) text.target_units = "char";
  torch::manual_seed(3);
  PairModel model = make_pair_model(text, config, examples);
  model.network->eval();
  return model;
}

}  // namespace attend::test
