#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "attend/decode/search.h"

namespace attend::test {

constexpr int64_t tokens = 4;  // 0 starts and 1 ends a sequence
inline const SpecialTokens ends{0, 1};

// A table of probabilities that depend on the previous token, the step and the sentence.
class TableModel {
 public:
  // For answers of up to `longest` tokens plus EOS.
  explicit TableModel(int64_t longest, int64_t sentences) {
    table = torch::randn({sentences, longest + 1, tokens, tokens}, torch::kDouble)
                .mul(2)
                .log_softmax(-1);
  }

  std::unique_ptr<DecodingState> start() { return start(torch::arange(table.size(0))); }
  // Starts only these sentences.
  std::unique_ptr<DecodingState> start(const at::Tensor& sentences) {
    return std::make_unique<State>(*this, sentences);
  }

  double log_probability(int64_t sentence, int64_t step, int64_t before, int64_t token) const {
    return table[sentence][step][before][token].item<double>();
  }

  at::Tensor table;      // [sentence, step, token before, token]
  at::Tensor attention;  // [step, token before, 3], returned as weights instead of the row's origin
  bool attends = true;
  int64_t calls = 0;

 private:
  struct State : DecodingState {
    State(TableModel& its_model, const at::Tensor& sentences)
        : model(its_model), sentence(sentences), position(torch::zeros_like(sentence)) {}

    StepResult step(const at::Tensor& tokens, bool with_weights, const Pass& /*pass*/) override {
      StepResult result;
      result.log_probabilities = model.table.index({sentence, position, tokens});
      // Returns the row's sentence, step and previous token as its weights.
      if (with_weights && model.attention.defined())
        result.weights = model.attention.index({position, tokens});
      else if (with_weights && model.attends)
        result.weights = torch::stack({sentence, position, tokens}, 1).to(torch::kFloat);
      position = position + 1;
      ++model.calls;
      return result;
    }

    void reorder(const at::Tensor& rows, bool same_sources) override {
      position = position.index_select(0, rows);
      if (!same_sources) sentence = sentence.index_select(0, rows);
    }

    bool appends() const override { return true; }

    void append(DecodingState& other) override {
      auto& more = static_cast<State&>(other);
      sentence = torch::cat({sentence, more.sentence});
      position = torch::cat({position, more.position});
    }

    TableModel& model;
    at::Tensor sentence, position;  // [N]
  };
};

// One task per sentence, each with at most `longest` tokens.
inline std::vector<SearchTask> tasks_of(const std::vector<int64_t>& longest) {
  std::vector<SearchTask> tasks;
  tasks.reserve(longest.size());
  for (const int64_t each : longest) {
    const size_t number = tasks.size();
    tasks.push_back({.longest = each, .source_length = 3, .number = number});
  }
  return tasks;
}

}  // namespace attend::test
