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

// Those tokens by their names.
std::vector<Rival> rivals_of(const std::vector<RivalToken>& tokens, const Vocabulary& vocabulary);

// What a network answers to one text.
struct Prediction {
  std::vector<std::string> source;     // the tokens that were read
  std::vector<std::string> unknown;    // those of them that the model does not know
  bool truncated = false;              // the text was longer than the model reads
  bool greyed = false;                 // an image in colour was read in grey
  std::string error;                   // why the text has no answer; empty if it has
  bool is_diverged = false;            // the error is that numbers of the model are not finite
  std::vector<Hypothesis> hypotheses;  // none for an empty text and for one with an error
  // The tokens of each hypothesis, with what SearchOptions::unknown puts in place of unknown ones.
  std::vector<std::vector<std::string>> tokens;
  std::optional<double> number;  // where the model answers numbers; the one token is its text
};

// The tokens of a text with their vectors [S, depth], and the vector of the text [depth], on the
// CPU. Where there are no tokens, or the text was not read, the last is undefined, and the others
// may be.
struct EncodedText {
  std::vector<std::string> tokens = {};
  at::Tensor vectors = {}, whole = {};
  bool truncated = false;  // the text was longer than the model reads
  std::string error = {};  // why the text was not read, where such texts are skipped
};

// Answers texts with networks: batched by length, spread over threads, answers in order. Calls,
// errors and guarantees are those of Model, which holds one.
class Predictor {
 public:
  // Other networks decode as one with that of the model: probabilities are the means of theirs. The
  // networks are neither placed nor packed.
  explicit Predictor(PairModel model, const ModelOptions& options = {},
                     const std::vector<std::shared_ptr<PairNetwork>>& others = {});

  // What a Model holds, and a Model that holds it.
  static Predictor& of(const Model& model) { return *model.predictor_; }
  static Model as_model(std::unique_ptr<Predictor> predictor) {
    return Model(std::move(predictor));
  }

  const PairModel& model() const { return model_; }

  // Calls PairNetwork::place of all networks.
  void place(const Devices& devices);

  // Calls PairNetwork::pack of all networks. Error where one has no steps for such weights, other
  // than float32.
  void pack(WeightType weights = WeightType::float32);

  // Does what Model::answer_each does.
  using Take = std::function<void(size_t index, Prediction prediction)>;
  void predict_each(const std::vector<std::string>& texts, const SearchOptions& options,
                    const std::vector<std::string>& prefixes, const Take& take,
                    const AnswerWatch& watch = {});

  // Does what Model::answer_arriving does.
  using TakeArriving = std::function<void(const ArrivingSource& asked, Prediction prediction)>;
  void predict_arriving(const SearchOptions& options, const Model::Arrivals& arrivals,
                        const TakeArriving& take);

  int64_t threads() const { return threads_.count(); }
  bool skips_bad() const { return skips_bad_; }  // ModelOptions::skip_bad

  std::vector<Prediction> predict(const std::vector<std::string>& texts,
                                  const SearchOptions& options,
                                  const std::vector<std::string>& prefixes = {});

  // The best answer's tokens; none for an empty text.
  std::vector<std::string> best_tokens(const Prediction& prediction) const;

  // The log probability of each token of each pair's target, including its end, if it has one. The
  // weights are those that were loaded, packed or not. Error where answers are numbers.
  std::vector<std::vector<double>> token_log_probabilities(const std::vector<EncodedPair>& pairs);
  std::vector<double> log_probabilities(const std::vector<EncodedPair>& pairs);  // their sums

  // For each token of a text but the first: its log probability given those before it, and the most
  // probable tokens in its place, best first.
  struct ScoredStep {
    double log_probability = 0;
    std::vector<RivalToken> rivals = {};
  };
  std::vector<ScoredStep> scored(const std::vector<int64_t>& ids, int64_t rivals);

  // Mean negative log-likelihood of a target token, ends included, in nats; of targets that are
  // numbers their mean squared error, standardised. Target tokens that are Vocabulary::padding are
  // left out.
  double loss(const std::vector<EncodedPair>& pairs);
  // Prepares pairs for loss() if the model answers labels and training lacks those of some targets:
  // removes these pairs, or of a tagger hides these tokens. Does nothing for other models.
  void hide_unknown_labels(std::vector<EncodedPair>& pairs) const;
  // The number of target tokens over which loss() is the mean, unless targets are numbers.
  static int64_t tokens_of_loss(const std::vector<EncodedPair>& pairs);

  using BatchWork = std::function<void(const std::vector<int64_t>& batch)>;
  // Calls take(i, the log probabilities [V] of the token behind the source of pair i, float32 on
  // the CPU) for each pair, from several threads at a time. The calling thread calls `tell` with
  // the pairs of each finished batch.
  using TakeStep = std::function<void(size_t pair, const at::Tensor& log_probabilities)>;
  void each_first_step(const std::vector<EncodedPair>& pairs, const TakeStep& take,
                       const BatchWork& tell = {});

  // The log probabilities [V] of the first token of each answer, float32 on the CPU; undefined for
  // an empty text.
  std::vector<at::Tensor> first_steps(const std::vector<std::string>& texts);

  // The log probabilities [S, V] of each step of the answer to those ids, whatever the earlier
  // steps answered.
  at::Tensor steps(const std::vector<int64_t>& source);

  // What PairNetwork::encodings() makes of each text. Error for several networks, and where the
  // network has no vectors.
  std::vector<EncodedText> encodings(const std::vector<std::string>& texts);

 private:
  // The sum that loss() divides, in nats.
  double loss_of_ensemble(const std::vector<EncodedPair>& pairs);
  struct Reading;
  class ArrivingCall;

  // The tokens of each text, their ids, and which texts can be answered.
  Reading read(const std::vector<std::string>& texts) const;
  void read_text(const std::string& text, Prediction& prediction, EncodedPair& encoded) const;
  // The same. SourceError on the first text that cannot be read.
  Reading read_all(const std::vector<std::string>& texts) const;

  void check(const std::vector<std::string>& texts, const SearchOptions& options,
             const std::vector<std::string>& prefixes) const;
  // The task of the search for a text. Error on a prefix that is too long or has unknown tokens.
  SearchTask task_of(const std::string& text, const EncodedPair& encoded, const std::string& prefix,
                     const SearchOptions& options) const;
  // The tasks of all texts that can be answered; the errors of others are put down in `reading`.
  std::vector<SearchTask> tasks_of(const std::vector<std::string>& texts, Reading& reading,
                                   const std::vector<std::string>& prefixes,
                                   const SearchOptions& options) const;
  // Has the search of the text of that number ask and tell `watch`.
  void watch_task(SearchTask& task, size_t text, const Prediction& prediction,
                  UnknownTokens unknown, const AnswerWatch& watch) const;
  SearchOptions search_options(const SearchOptions& options) const;
  SpecialTokens special_tokens(const SearchOptions& options) const;
  UnknownTokens unknown_tokens(const SearchOptions& options) const;
  int64_t maximum_answer_length() const;
  // What an answer has for a token, of which `weights` [S] say what it attended to.
  std::string token_name(int64_t token, const at::Tensor& weights, const Prediction& prediction,
                         UnknownTokens unknown) const;
  // Fills in what was found, and the tokens of each hypothesis.
  void put_found(std::vector<Hypothesis> found, const SearchOptions& options,
                 Prediction& prediction) const;

  // The same of some of the pairs.
  void each_first_step(const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order,
                       const TakeStep& take, const BatchWork& tell = {});

  // Calls `work` with the length_batches() of the pairs, of up to `most`, in parallel. Batches with
  // an earlier first pair begin earlier. The calling thread calls `tell` with each finished one.
  void in_batches(
      const std::vector<EncodedPair>& pairs, const std::vector<int64_t>& order, int64_t most,
      const BatchWork& work, const BatchWork& tell = {},
      const std::function<bool(int64_t length)>& may_pad = [](int64_t) { return false; });

  std::unique_ptr<DecodingState> start(const Batch& batch);
  // Throws the error, or puts it down if bad sources are skipped.
  void put_failure(Prediction& prediction, const NotANumber& error) const;
  // Answers texts of a batch with numbers, the means of those of the networks.
  void answer_numbers(Reading& reading, const std::vector<int64_t>& batch, bool with_weights);
  bool wants_equal_lengths() const;
  // Whether sources of that length are answered beside others of other lengths.
  bool may_pad(int64_t length, const SearchOptions& options) const;

  const PairModel model_;
  std::vector<std::shared_ptr<PairNetwork>> networks_;
  WorkerThreads threads_;
  std::atomic<int64_t> calls_ = 0;  // of in_batches() that are under way
  bool strict_, skips_bad_;         // as ModelOptions
};

}  // namespace attend
