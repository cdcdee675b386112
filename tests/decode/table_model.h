#pragma once

#include <torch/types.h>

#include <vector>

#include "attend/decode/search.h"

namespace attend::test {

constexpr int64_t tokens = 4;  // of which 0 starts and 1 ends
inline const SpecialTokens ends{0, 1};

// A table of probabilities that depend on the token before, the step and the sentence.
class TableModel : public StepModel {
 public:
  // For answers of up to `longest` tokens and their end.
  explicit TableModel(int64_t longest, int64_t sentences) {
    table = torch::randn({sentences, longest + 1, tokens, tokens}, torch::kDouble)
                .mul(2)
                .log_softmax(-1);
  }

  StepState start() const {
    const int64_t sentences = table.size(0);
    StepState state;
    state.recurrent = {torch::zeros({sentences}, torch::kLong)};
    state.constant = {torch::arange(sentences)};
    return state;
  }

  StepResult step(const at::Tensor& tokens, StepState& state, bool with_weights) override {
    const at::Tensor position = state.recurrent[0];
    StepResult result;
    result.log_probabilities = table.index({state.constant[0], position, tokens});
    state.recurrent = {position + 1};
    // Says which sentence, step and token before the row was made for.
    if (with_weights && attention.defined())
      result.weights = attention.index({position, tokens});
    else if (with_weights && attends)
      result.weights = torch::stack({state.constant[0], position, tokens}, 1).to(torch::kFloat);
    ++calls;
    return result;
  }

  double log_probability(int64_t sentence, int64_t step, int64_t before, int64_t token) const {
    return table[sentence][step][before][token].item<double>();
  }

  at::Tensor table;      // [sentence, step, token before, token]
  at::Tensor attention;  // [step, token before, 3], instead of what the row was made for
  bool attends = true;
  int64_t calls = 0;
};

// One task a sentence, each of `longest` tokens at most.
inline std::vector<SearchTask> tasks_of(const std::vector<int64_t>& longest) {
  std::vector<SearchTask> tasks;
  tasks.reserve(longest.size());
  for (const int64_t each : longest) {
    const auto stream = static_cast<uint64_t>(tasks.size());
    tasks.push_back({.longest = each, .source_length = 3, .stream = stream});
  }
  return tasks;
}

}  // namespace attend::test
