#include "attend/decode/beam_search.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double impossible = -std::numeric_limits<double>::infinity();

// One symbol of a hypothesis, and the one before it. Hypotheses share their beginnings.
struct Node {
  int64_t symbol = 0;
  int64_t before = -1;  // index of a node, -1 at the start
  int64_t step = 0;
  int64_t row = 0;  // of this step's tensors
};

struct Sentence {
  int64_t index = 0;           // in the caller's order
  std::vector<int64_t> nodes;  // the last node of each live hypothesis
  std::vector<double> log_probabilities;
  std::vector<Hypothesis> finished;
};

Tensor to_tensor(const std::vector<int64_t>& values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

class Search {
 public:
  Search(StepModel& model, StepState start, const std::vector<int64_t>& longest,
         const SequenceEnds& ends, const BeamOptions& options)
      : model_(model), longest_(longest), ends_(ends), options_(options), state_(std::move(start)) {
    for (size_t b = 0; b < longest.size(); ++b) {
      Sentence sentence;
      sentence.index = static_cast<int64_t>(b);
      sentence.nodes = {-1};
      sentence.log_probabilities = {0.0};
      sentences_.push_back(std::move(sentence));
      owners_.push_back(static_cast<int64_t>(b));
    }
  }

  std::vector<std::vector<Hypothesis>> run() {
    std::vector<std::vector<Hypothesis>> results(longest_.size());
    for (int64_t length = 0; !sentences_.empty(); ++length) {
      retire(length, results);
      if (!sentences_.empty()) extend(length);
    }
    return results;
  }

 private:
  double score(double log_probability, size_t symbols) const {
    // The end counts as a symbol, so the length is never 0.
    return log_probability / std::pow(static_cast<double>(symbols + 1), options_.length_penalty);
  }

  std::vector<int64_t> live_symbols() const {
    std::vector<int64_t> symbols;
    for (const Sentence& sentence : sentences_)
      for (const int64_t node : sentence.nodes)
        symbols.push_back(node < 0 ? ends_.start : nodes_[static_cast<size_t>(node)].symbol);
    return symbols;
  }

  // One step of the model for every live hypothesis; each sentence then keeps its best candidates.
  void extend(int64_t step) {
    const StepResult result = model_.step(to_tensor(live_symbols()), state_, options_.with_weights);
    if (options_.with_weights && result.weights.defined())
      weights_.push_back(result.weights.to(at::kCPU, at::kFloat));
    const int64_t candidates = std::min(options_.beam, result.log_probabilities.size(1));
    const auto [values, symbols] = result.log_probabilities.topk(candidates, 1);
    const Tensor value_table = values.to(at::kCPU, at::kDouble).contiguous();
    const Tensor symbol_table = symbols.to(at::kCPU).contiguous();
    std::vector<int64_t> origins;
    int64_t row = 0;
    for (Sentence& sentence : sentences_) {
      const auto rows = static_cast<int64_t>(sentence.nodes.size());
      advance(sentence, row, step, value_table, symbol_table, origins);
      row += rows;
    }
    keep_rows(origins);
  }

  void advance(Sentence& sentence, int64_t first_row, int64_t step, const Tensor& values,
               const Tensor& symbols, std::vector<int64_t>& origins) {
    struct Candidate {
      double log_probability;
      int64_t live;  // which hypothesis of the sentence it extends
      int64_t symbol;
    };
    const auto value = values.accessor<double, 2>();
    const auto symbol = symbols.accessor<int64_t, 2>();
    std::vector<Candidate> candidates;
    for (size_t live = 0; live < sentence.nodes.size(); ++live) {
      const int64_t row = first_row + static_cast<int64_t>(live);
      if (std::isnan(value[row][0])) fail("[beam search] the model's probabilities are NaN");
      for (int64_t c = 0; c < values.size(1) && value[row][c] > impossible; ++c)
        candidates.push_back({sentence.log_probabilities[live] + value[row][c],
                              static_cast<int64_t>(live), symbol[row][c]});
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.log_probability > b.log_probability;
    });
    const size_t width = static_cast<size_t>(options_.beam) - sentence.finished.size();
    if (candidates.size() > width) candidates.resize(width);
    std::vector<int64_t> nodes;
    std::vector<double> log_probabilities;
    for (const Candidate& candidate : candidates) {
      const int64_t before = sentence.nodes[static_cast<size_t>(candidate.live)];
      const int64_t row = first_row + candidate.live;
      if (candidate.symbol == ends_.end) {
        sentence.finished.push_back(hypothesis(before, candidate.log_probability, true));
        continue;
      }
      nodes.push_back(static_cast<int64_t>(nodes_.size()));
      nodes_.push_back({candidate.symbol, before, step, row});
      log_probabilities.push_back(candidate.log_probability);
      origins.push_back(row);
    }
    sentence.nodes = std::move(nodes);
    sentence.log_probabilities = std::move(log_probabilities);
  }

  // All rows, each in its place.
  bool is_identity(const std::vector<int64_t>& rows) const {
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != static_cast<int64_t>(i)) return false;
    return rows.size() == owners_.size();
  }

  // Takes the given rows of the state. Rows of one sentence read the same memory, so memory moves
  // only when the sentences of the rows change, not when hypotheses swap places.
  void keep_rows(const std::vector<int64_t>& rows) {
    std::vector<int64_t> owners;
    owners.reserve(rows.size());
    for (const int64_t row : rows) owners.push_back(owners_[static_cast<size_t>(row)]);
    if (!is_identity(rows)) state_.reorder(to_tensor(rows), owners == owners_);
    owners_ = std::move(owners);
  }

  // Takes out the sentences that are done.
  void retire(int64_t length, std::vector<std::vector<Hypothesis>>& results) {
    std::vector<Sentence> live;
    std::vector<int64_t> kept;
    int64_t row = 0;
    for (Sentence& sentence : sentences_) {
      const auto rows = static_cast<int64_t>(sentence.nodes.size());
      const auto index = static_cast<size_t>(sentence.index);
      if (rows == 0 || length >= longest_[index]) {
        results[index] = best(sentence);
      } else {
        for (int64_t i = 0; i < rows; ++i) kept.push_back(row + i);
        live.push_back(std::move(sentence));
      }
      row += rows;
    }
    sentences_ = std::move(live);
    if (kept.size() != owners_.size()) keep_rows(kept);
  }

  std::vector<Hypothesis> best(Sentence& sentence) {
    std::vector<Hypothesis> found = std::move(sentence.finished);
    for (size_t i = 0; i < sentence.nodes.size(); ++i)
      found.push_back(hypothesis(sentence.nodes[i], sentence.log_probabilities[i], false));
    // A complete hypothesis is an answer; one that was cut is offered only behind those.
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.complete != b.complete ? a.complete : a.score > b.score;
    });
    if (found.size() > static_cast<size_t>(options_.nbest))
      found.resize(static_cast<size_t>(options_.nbest));
    return found;
  }

  Hypothesis hypothesis(int64_t node, double log_probability, bool complete) const {
    Hypothesis result;
    std::vector<Tensor> rows;
    for (int64_t at = node; at >= 0; at = nodes_[static_cast<size_t>(at)].before) {
      const Node& part = nodes_[static_cast<size_t>(at)];
      result.symbols.push_back(part.symbol);
      if (!weights_.empty())
        rows.push_back(weights_[static_cast<size_t>(part.step)].select(0, part.row));
    }
    std::reverse(result.symbols.begin(), result.symbols.end());
    std::reverse(rows.begin(), rows.end());
    if (!rows.empty()) result.weights = at::stack(rows);
    result.log_probability = log_probability;
    result.score = score(log_probability, result.symbols.size());
    result.complete = complete;
    return result;
  }

  StepModel& model_;
  const std::vector<int64_t>& longest_;
  const SequenceEnds ends_;
  const BeamOptions& options_;
  StepState state_;
  std::vector<Sentence> sentences_;
  std::vector<int64_t> owners_;  // the sentence of each row of the state
  std::vector<Node> nodes_;
  std::vector<Tensor> weights_;  // [rows, S] of each step
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, StepState start,
                                                 const std::vector<int64_t>& longest,
                                                 const SequenceEnds& ends,
                                                 const BeamOptions& options) {
  if (options.beam < 1) fail("[beam search] beam must be at least 1, got {}", options.beam);
  if (options.nbest < 1 || options.nbest > options.beam)
    fail("[beam search] nbest must be between 1 and the beam {}, got {}", options.beam,
         options.nbest);
  if (options.length_penalty < 0)
    fail("[beam search] length_penalty must be 0 or more, got {}", options.length_penalty);
  at::NoGradGuard no_gradient;
  return Search(model, std::move(start), longest, ends, options).run();
}

}  // namespace attend
