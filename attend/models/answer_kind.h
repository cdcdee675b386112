#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/text_config.h"
#include "attend/decode/answer.h"
#include "attend/decode/search_options.h"
#include "attend/text/bpe.h"
#include "attend/text/vocabulary.h"

namespace attend {

class NetworkConfig;
enum class MeasuredFor;  // attend/metrics/metric.h
struct EncodedPair;
struct PairModel;
struct TextCodec;

// One target of an example.
struct GivenTarget {
  const std::string& source;
  const std::string& text;
  std::vector<int64_t> ids;  // token ids
};

// An answer that is read off a network's first step.
struct StepAnswer {
  std::vector<int64_t> ids;
  std::vector<std::string> tokens;
  std::vector<double> log_probabilities = {};  // per token; empty for numbers
  std::optional<double> number = {};           // in the unit of training
  std::optional<double> log_probability = {};  // default: sum of log_probabilities
  std::vector<Alternative> labels = {};        // Candidate::labels
  std::optional<CharacterSpan> span = {};      // Candidate::span
  std::optional<std::string> text = {};        // default: the text of the tokens
};

// Source of an answer without a search.
struct AskedSource {
  const std::string& text;
  // Per part of the source that the network read (AnswerKind::parts): values of its first step.
  std::vector<std::span<const double>> steps;
  const SearchOptions& options;
};

// Kind of a model's answers, such as a sequence, a label or a number. A ModelType names one.
// Everything that depends on the kind is a function of this class; by default it describes
// sequences. Objects live until the process ends.
class AnswerKind {
 public:
  virtual ~AnswerKind() = default;

  virtual std::string_view name() const = 0;  // after "a" in messages
  // Kind of the answers to targets of this kind; null: not supported.
  virtual const AnswerKind* for_targets(TargetKind target) const {
    return target == TargetKind::text ? this : nullptr;
  }

  // Form of an answer.

  // Number of tokens of an answer to a source of `source_tokens`; 0: EOS ends the answer.
  virtual int64_t length(int64_t /*source_tokens*/) const { return 0; }
  // Whether an answer has one token per source token, at the same position.
  bool is_tokenwise() const { return length(3) == 3; }
  // Whether target tokens are labels: all occur in training, and none is unknown.
  virtual bool has_labels() const { return false; }
  bool is_label() const { return has_labels() && length(3) == 1; }
  bool is_tags() const { return has_labels() && is_tokenwise(); }
  // Whether an answer is any number of labels, with Candidate::labels, and EncodedPair::labels are
  // the target.
  virtual bool is_label_set() const { return false; }
  // Whether an answer is a number from 0 to 1. The network gives its logit.
  virtual bool is_probability() const { return false; }
  // Whether an answer is a part of the second text of its source, or nothing. Its two tokens are
  // the positions of the first and last token of the part; 0 and 0 mean nothing. The network reads
  // a source that is too long in parts().
  virtual bool is_span() const { return false; }
  // Whether an answer continues its source; it then has no end of its own.
  virtual bool continues() const { return false; }
  // Whether an answer is the source with its hidden tokens filled in.
  virtual bool fills() const { return false; }
  // Whether the answer is one of all items, ranked.
  virtual bool ranks() const { return false; }
  // Whether texts without targets are training data. Targets then are tokens of the source.
  bool is_text() const { return continues() || fills(); }
  // Whether there are answers; otherwise only vectors, which cannot be trained by themselves.
  virtual bool has_answers() const { return true; }
  // Whether answers are tokens with probabilities; otherwise they are the network's numbers.
  virtual bool has_probabilities() const { return true; }
  // Whether possible answers share a probability of 1.
  virtual bool shares_probability() const { return has_probabilities(); }
  // Whether a search finds the answers; otherwise read_step() reads them.
  virtual bool is_searched() const { return true; }

  // Training data.

  // Error if the settings of texts do not fit. `type`: model.type.
  virtual void check_text(const TextConfig& /*text*/, const std::string& /*type*/) const {}
  // As above, for a stored model; `file` is its config.toml.
  virtual void check_stored(const TextConfig& /*text*/, const std::string& /*type*/,
                            const std::string& /*file*/) const {}
  // Sets the values that the targets of training decide.
  virtual void measure(const WordCounts& /*targets*/, TextConfig& /*text*/) const {}
  // Vocabulary of targets, unless sources share it.
  virtual Vocabulary target_vocabulary(const WordCounts& targets, const TextCodec& codec,
                                       const TextConfig& text, const Vocabulary& source) const;
  // Error if a target has a wrong number of labels. Called if has_labels(). `tokens`: number
  // of source tokens, if is_tokenwise().
  virtual void check_labels(int64_t /*labels*/, int64_t /*tokens*/, const std::string& /*source*/,
                            const std::string& /*target*/, const TextConfig& /*text*/) const {}
  // Removes ids that the model does not read from a source.
  virtual void clean_source(std::vector<int64_t>& /*ids*/) const {}
  // Sets the target and `no_eos` of the pair of this source.
  virtual void encode_target(const PairModel& model, GivenTarget given, EncodedPair& pair) const;
  // Whether a source that is too long keeps its last tokens instead of its first.
  virtual bool keeps_end() const { return continues(); }
  const char* kept_part() const { return keeps_end() ? "last" : "first"; }
  // Maximum number of target tokens of an example.
  virtual int64_t longest_target(const NetworkConfig& network) const;
  // Settings that limit sources and targets, for messages.
  virtual std::string_view source_limit() const { return "model.maximum_source_length"; }
  virtual std::string_view target_limit() const { return "3 x model.maximum_source_length + 10"; }
  // The model's targets, after the number of its "source".
  virtual std::string described_targets(const PairModel& model) const;

  // Answers.

  // Answer of a network's first step, or of the mean over the networks of an ensemble: log
  // probabilities per target token, or one number; nullopt if they are not finite. Called by
  // read_steps().
  virtual std::optional<StepAnswer> read_step(const PairModel& model,
                                              std::span<const double> step) const;
  // The sources that the network reads for one source; by default only the source.
  virtual std::vector<EncodedPair> parts(const PairModel& model, const EncodedPair& source) const;
  // Answers to a source, best first; empty if values are not finite. Called unless is_searched().
  // By default read_step() of the first part.
  virtual std::vector<StepAnswer> read_steps(const PairModel& model,
                                             const AskedSource& asked) const;
  // Adapts options that the kind does not use, for example a beam for answers that are all ranked.
  virtual void fit(SearchOptions& /*options*/) const {}
  // A value of the network in the unit of training.
  virtual double in_unit(double value, const TextConfig& /*text*/) const { return value; }
  // Brings a reference and its tokens into the form of answers.
  virtual void normalise(const TextCodec& /*codec*/, std::string& /*reference*/,
                         std::vector<std::string>& /*tokens*/) const {}

  // Measures.

  virtual std::string metric() const { return "token_error"; }  // default of train.metric
  virtual MeasuredFor measured() const;                         // default metrics of evaluations
  // Removes or hides targets that were not in training, unless they are part of the loss.
  virtual void hide_unknown(std::vector<EncodedPair>& /*pairs*/) const {}
  // Whether the likelihood contains unknown target tokens.
  virtual bool counts_unknown() const { return has_probabilities() && !has_labels(); }
  // Number of values in the mean of the loss.
  virtual int64_t loss_terms(const std::vector<EncodedPair>& pairs) const;

  // Explanations.

  // Whether the answer is read from one vector of the whole source, which layers have mixed.
  virtual bool is_pooled() const { return false; }
  // Why no other answer than the model's can be explained, after "the model answers with"; empty if
  // it can.
  virtual std::string_view own_answer_only() const { return {}; }
};

// Another sequence.
const AnswerKind& sequence_answers();
// One of the labels of training, any number of them, or a number.
const AnswerKind& label_answers();
// A label for each token of the source.
const AnswerKind& tag_answers();
// A part of the second text of the source (extractive question answering).
const AnswerKind& span_answers();
// The text that follows; trained on texts, with one vocabulary.
const AnswerKind& continuation_answers();
// The source with hidden tokens filled in; trained on texts.
const AnswerKind& filled_answers();
// Vectors of the source's tokens.
const AnswerKind& vector_answers();
// The next item after the items of the source, ranked among all items; trained on interactions,
// with one vocabulary.
const AnswerKind& item_answers();

// The tokens that occur, and all tokens of the alphabet.
Vocabulary make_vocabulary(WordCounts counts, const std::vector<std::string>& alphabet,
                           int64_t minimum_count);

}  // namespace attend
