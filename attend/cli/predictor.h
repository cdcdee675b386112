#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attend/data/metrics.h"
#include "attend/decode/beam_search.h"
#include "attend/models/pair_model.h"
#include "attend/train/replica_threads.h"

namespace attend {

// Where a decoder that does not end its answer is stopped, in symbols; no pair in practice comes
// near this.
int64_t longest_answer(int64_t source_symbols);

// What a model answers to one text.
struct Prediction {
  std::vector<std::string> source;     // the symbols that were read
  bool cut = false;                    // the text was longer than the model reads
  std::vector<Hypothesis> hypotheses;  // best first; none for an empty text
};

// Decodes texts with a model: batched by length, spread over threads, answers in order.
class Predictor {
 public:
  Predictor(const PairModel& model, std::shared_ptr<PairNetwork> network, int64_t threads);

  // `report`, if any, is told how many texts are done of how many, from one thread at a time.
  using Report = std::function<void(int64_t done, int64_t total)>;
  std::vector<Prediction> predict(const std::vector<std::string>& texts, const BeamOptions& options,
                                  const Report& report = {});

  // The best answer's symbols; none for an empty text.
  std::vector<std::string> best_symbols(const Prediction& prediction) const;

  // Mean negative log-likelihood of a target symbol, ends included, in nats.
  double loss(const std::vector<EncodedPair>& pairs);

 private:
  // The same for images and sounds.
  std::vector<int64_t> read_frames(const std::vector<std::string>& texts,
                                   std::vector<Prediction>& predictions,
                                   std::vector<EncodedPair>& encoded) const;

  // Fills in the symbols of each text and their ids; returns the texts that have any, by length.
  std::vector<int64_t> read(const std::vector<std::string>& texts,
                            std::vector<Prediction>& predictions,
                            std::vector<EncodedPair>& encoded) const;

  const PairModel& model_;
  std::shared_ptr<PairNetwork> network_;
  ReplicaThreads threads_;
  int64_t thread_count_;
};

// Errors of the best answers to the examples.
struct Evaluation {
  ErrorCounts errors;
  std::map<int64_t, ErrorCounts> by_length;  // of the source, in symbols
  std::vector<std::string> answers;          // to each example
};
Evaluation evaluate(Predictor& predictor, const PairModel& model,
                    const std::vector<Example>& examples, const BeamOptions& options,
                    const Predictor::Report& report = {});

}  // namespace attend
