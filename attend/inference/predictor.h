#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/decode/search.h"
#include "attend/inference/model.h"
#include "attend/models/pair_model.h"
#include "attend/nn/worker_threads.h"

namespace attend {

// Tokens of a text with their vectors [S, depth], and the vector of the text [depth], on the CPU.
// If the text has no tokens or was not read, `whole` is undefined, and `vectors` may be.
struct EncodedText {
  std::vector<std::string> tokens = {};
  at::Tensor vectors = {}, whole = {};
  bool truncated = false;  // the text was longer than the model reads
  std::string error = {};  // reason why a skipped text was not read
};

// Answers texts with networks: batches them by length, distributes them over threads, and returns
// answers in order. Calls, errors and guarantees are as in Model, which owns a Predictor.
class Predictor {
 public:
  // `others` decode together with the model's network: probabilities are means over the networks.
  // The constructor neither places nor packs the networks.
  explicit Predictor(PairModel model, const ModelOptions& options = {},
                     const std::vector<std::shared_ptr<PairNetwork>>& others = {});

  // The Predictor of a Model, and a Model of a Predictor.
  static Predictor& of(const Model& model) { return *model.predictor_; }
  static Model as_model(std::unique_ptr<Predictor> predictor) {
    return Model(std::move(predictor));
  }

  const PairModel& model() const { return model_; }

  // Error if options do not apply to the model, or prefixes do not.
  void check(const SearchOptions& options, bool has_prefixes) const;

  // Calls PairNetwork::place of all networks.
  void place(const Devices& devices);

  // Calls PairNetwork::pack of all networks. Error if a network does not support the weight type.
  void pack(WeightType weights = WeightType::float32);

  // As the functions of Model.
  std::vector<Answer> answer(const std::vector<std::string>& sources, const SearchOptions& options,
                             const std::vector<std::string>& prefixes = {});
  void answer_each(std::vector<Request> requests);
  void answer_arriving(const Model::Arrivals& arrivals);

  int64_t threads() const { return threads_.count(); }
  bool skips_bad() const { return skips_bad_; }  // ModelOptions::skip_bad

  // Log probability of each token of each pair's target, with its EOS if it has one. Uses the
  // weights as loaded, packed or not. Error if answers are numbers.
  std::vector<std::vector<double>> token_log_probabilities(const std::vector<EncodedPair>& pairs);
  std::vector<double> log_probabilities(
      const std::vector<EncodedPair>& pairs);  // sums over the tokens

  // For each token of a text except the first: its log probability given the tokens before it, and
  // the most probable tokens at its position, best first.
  struct ScoredStep {
    double log_probability = 0;
    std::vector<Alternative> alternatives = {};
  };
  std::vector<ScoredStep> scored(const std::vector<int64_t>& ids, int64_t alternatives);

  // Mean of PairNetwork::objective() over AnswerKind::loss_terms(): negative log-likelihood per
  // target token, with EOS, in nats. If targets are numbers: their mean squared error,
  // standardised. Tokens that are Vocabulary::padding are excluded.
  double loss(const std::vector<EncodedPair>& pairs);

  using BatchWork = std::function<void(const std::vector<int64_t>& batch)>;
  // Calls `take` for each pair i with (i, log probabilities [V] of the token after its source,
  // float32 on the CPU), from several threads. After each batch the calling thread calls the last
  // argument with the pairs of the batch.
  using TakeStep = std::function<void(size_t pair, const at::Tensor& log_probabilities)>;
  void each_first_step(const std::vector<EncodedPair>& pairs, const TakeStep& take,
                       const BatchWork& tell = {});

  // Log probabilities [V] of the first token of each answer, float32 on the CPU; undefined for an
  // empty text.
  std::vector<at::Tensor> first_steps(const std::vector<std::string>& texts);

  // Log probabilities [S, V] of each step of a greedy answer to these ids.
  at::Tensor steps(const std::vector<int64_t>& source);

  // Result of PairNetwork::encodings() for each text. The first `skipped` tokens are not part of
  // `whole`; if a text has no others, `whole` is undefined. Error for several networks, and if the
  // network has no vectors, or cannot skip tokens.
  std::vector<EncodedText> encodings(const std::vector<std::string>& texts, int64_t skipped = 0);

 private:
  // Sum of the negative log-likelihoods in nats.
  double loss_of_ensemble(const std::vector<EncodedPair>& pairs);
  struct Reading;
  class RequestGroup;
  class ArrivingCall;

  // Tokens of each text, their ids, and the texts that can be answered.
  Reading read(const std::vector<std::string>& texts, const TextCodec& codec) const;
  Reading read(const std::vector<std::string>& texts) const;
  void read_text(const std::string& text, const TextCodec& codec, Answer& answer,
                 EncodedPair& encoded) const;
  // As read(). SourceError on the first text that cannot be read.
  Reading read_all(const std::vector<std::string>& texts) const;

  // Search task of a request; `codec` splits its prefix. Error on a prefix that is too long or has
  // unknown tokens.
  SearchTask task_of(const std::string& text, const EncodedPair& encoded, const Request& request,
                     const TextCodec& codec) const;
  SearchOptions search_options(const SearchOptions& options) const;
  SpecialTokens special_tokens(const SearchOptions& options) const;
  UnknownTokens unknown_tokens(const SearchOptions& options) const;
  int64_t maximum_answer_length() const;
  // Name of token `t` of a candidate without texts.
  std::string token_name(const Candidate& candidate, size_t t, const Answer& answer,
                         UnknownTokens unknown) const;
  std::vector<Alternative> named(std::vector<Alternative> alternatives) const;
  // Sets the candidates, with their texts.
  void put_found(std::vector<Candidate> found, const SearchOptions& options, Answer& answer) const;

  // As above, for some of the pairs.
  void each_first_step(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order,
                       const TakeStep& take, const BatchWork& tell = {});

  // Calls `work` in parallel with the length_batches() of the pairs, of up to `maximum` pairs.
  // Batches with an earlier first pair start earlier. The calling thread calls the second function
  // with each finished batch.
  void in_batches(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order,
                  int64_t maximum, const BatchWork& work, const BatchWork& tell = {},
                  bool may_pad = false);

  std::unique_ptr<DecodingState> start(const Batch& batch);
  // Throws the error, or records it if bad sources are skipped.
  void put_failure(Answer& answer, const NotANumber& error) const;
  // First steps of sources of a batch: mean over the networks.
  struct FirstSteps {
    at::Tensor values, weights;  // [B, V] float64, and [B, S]; no weights: undefined
  };
  FirstSteps mean_first_steps(const std::vector<EncodedPair>& sources,
                              const std::vector<int64_t>& batch, bool with_weights);
  // Answers the texts of a batch by AnswerKind::read_steps() of the mean over the networks.
  void answer_by_step(Reading& reading, const std::vector<int64_t>& batch,
                      const SearchOptions& options);
  Candidate candidate_of(StepAnswer read) const;
  bool wants_equal_lengths() const;
  // Whether sources of different lengths may share a batch.
  bool may_pad(const SearchOptions& options) const;

  const PairModel model_;
  const AnswerKind& kind_;
  std::vector<std::shared_ptr<PairNetwork>> networks_;
  WorkerThreads threads_;
  std::atomic<int64_t> calls_ = 0;  // running calls of in_batches()
  bool strict_, skips_bad_;         // as ModelOptions
};

}  // namespace attend
