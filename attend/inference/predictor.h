#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attend/data/metrics.h"
#include "attend/decode/ensemble.h"
#include "attend/decode/search.h"
#include "attend/models/pair_model.h"
#include "attend/nn/replica_threads.h"

namespace attend {

struct Decoding {
  SearchOptions search = {};
  int64_t maximum_length = 0;  // tokens behind the prefix; 0: longest_answer() of the source
  bool strict = false;         // refuse a text that would be cut
};

// What a model answers to one text.
struct Prediction {
  std::vector<std::string> source;     // the tokens that were read
  bool cut = false;                    // the text was longer than the model reads
  std::vector<Hypothesis> hypotheses;  // none for an empty text
};

// The networks of models whose vocabularies are those of `model`, to decode as one with it. Errors
// as load_pair_model, and on other vocabularies.
std::vector<std::shared_ptr<PairNetwork>> load_members(const PairModel& model,
                                                       const std::vector<std::string>& folders);

// Decodes texts with a model: batched by length, spread over threads, answers in order. On the CPU
// the answer to a text, its scores and weights included, does not depend on the texts beside it,
// their order or the number of threads, to the last bit (SteadyRows).
class Predictor {
 public:
  // `others` decode as one with the network: probabilities are the means of theirs.
  Predictor(const PairModel& model, std::shared_ptr<PairNetwork> network, int64_t threads,
            const std::vector<std::shared_ptr<PairNetwork>>& others = {});

  // As PairNetwork::place, of all networks.
  void place(const Devices& devices);

  // `report`, if any, is told how many texts are done of how many, from one thread at a time.
  using Report = std::function<void(int64_t done, int64_t total)>;

  // `prefixes`, where there are any, are what the answers begin with. Texts are numbered through
  // all calls, and a text that is drawn from has the random numbers of its number. With
  // decoding.strict, Error on a text that is longer than the model reads.
  std::vector<Prediction> predict(const std::vector<std::string>& texts, const Decoding& decoding,
                                  const Report& report = {},
                                  const std::vector<std::string>& prefixes = {});

  // The best answer's tokens; none for an empty text.
  std::vector<std::string> best_tokens(const Prediction& prediction) const;

  // The log probability of each pair's target, its end, if it has one, included.
  std::vector<double> log_probabilities(const std::vector<EncodedPair>& pairs);

  // Mean negative log-likelihood of a target token, ends included, in nats.
  double loss(const std::vector<EncodedPair>& pairs);

 private:
  // Fills in the tokens of each text and their ids; returns the texts that can be answered.
  std::vector<int64_t> read(const std::vector<std::string>& texts,
                            std::vector<Prediction>& predictions,
                            std::vector<EncodedPair>& encoded) const;
  // The same for images and sounds.
  std::vector<int64_t> read_frames(const std::vector<std::string>& texts,
                                   std::vector<Prediction>& predictions,
                                   std::vector<EncodedPair>& encoded) const;

  void refuse_cut(const std::vector<std::string>& texts,
                  const std::vector<Prediction>& predictions) const;

  // Calls `work` with batches of pairs of one source length, in parallel.
  void in_batches(const std::vector<EncodedPair>& pairs, std::vector<int64_t> order,
                  const std::function<void(const std::vector<int64_t>& batch)>& work);

  StepModel& decoder();
  StepState start(const Batch& batch);
  bool wants_equal_lengths() const;

  const PairModel& model_;
  std::vector<std::shared_ptr<PairNetwork>> networks_;
  Ensemble ensemble_;
  ReplicaThreads threads_;
  int64_t thread_count_;
  uint64_t texts_read_ = 0;
};

// Errors of the best answers to the examples.
struct Evaluation {
  ErrorCounts errors;
  std::map<int64_t, ErrorCounts> by_length;  // of the source, in tokens
  std::vector<int64_t> lengths;              // of each source
  std::vector<std::string> answers;          // to each example
  int64_t cut = 0;                           // sources that are longer than the model reads
};
Evaluation evaluate(Predictor& predictor, const PairModel& model,
                    const std::vector<Example>& examples, const Decoding& decoding,
                    const Predictor::Report& report = {});

}  // namespace attend
