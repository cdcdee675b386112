#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/data/pairs.h"
#include "attend/data/text_config.h"
#include "attend/decode/request.h"
#include "attend/decode/search_options.h"
#include "attend/decode/weight_type.h"
#include "attend/files/image.h"
#include "attend/models/answer_kind.h"
#include "attend/nn/device_placement.h"
#include "attend/text/text_tokenizer.h"

namespace attend {

class Predictor;
struct PairModel;

struct ModelOptions {
  DevicePlacement placement = {};
  // Precision of the computation. bfloat16: weights and cached keys and values have 8 significant
  // bits. int8: weights of one byte, with a scale per unit. Both are faster and less exact. Error
  // if the model does not support them.
  WeightType weights = WeightType::float32;
  int64_t threads = 0;  // for all calls together; 0: one per core
  bool strict = false;  // a source longer than the model reads is an Error; otherwise truncated
  // Bad sources do not end a call: their Answer or Embedding holds the error instead. A source is
  // bad if it is an Error or the model computes numbers that are not finite.
  bool skip_bad = false;
  // Languages of sources and answers; empty: data.source_language and data.target_language of the
  // folder. Error if the model lacks a language.
  std::string source_language = {}, target_language = {};
  // Prompt before the first text of each pair, instead of data.default_prompt: its name in
  // data.prompts, or its text, which may be empty. Error if both are given, on an unknown name, and
  // if the model reads no pairs.
  std::string prompt_name = {};
  std::optional<std::string> prompt = {};
};

// Name of the mask in texts of a model without a tokenizer of its own.
constexpr const char* default_mask = "[MASK]";

struct TokenProbability {
  std::string token;
  double probability = 0;
};

// A token of a source.
struct SourceToken {
  int64_t id = 0;  // in the model's own tokenizer (TextCodec::outer_id)
  std::string text;
  bool is_known = true;     // false: the model reads it as unknown
  bool is_special = false;  // added to every text by the tokenizer, such as [CLS]
  bool is_second = false;   // in the second text of a pair, or after it
  TokenSpan place = {};     // range in the text; set by tokens_read()
};

// A token of a text, and its probability given the tokens before it.
struct ScoredToken {
  std::string token;
  std::optional<double> log_probability = {};  // empty for the first token
  std::vector<Alternative> alternatives = {};  // most probable tokens at its position, best first
  size_t offset = 0;                           // in the text of all tokens, in characters
};

// Vectors of a source's tokens, and of the whole source.
struct Embedding {
  std::vector<std::string> tokens;
  int64_t depth = 0;
  std::vector<float> vectors;  // [tokens, depth]
  // [depth], [model.text_depth] or [model.text_cut]: the mean over the tokens, or the text vector
  // that the model was trained for; empty without tokens.
  std::vector<float> whole;
  bool truncated = false;    // the source was longer than the model reads
  std::string error = {};    // reason for no vectors, with ModelOptions::skip_bad
  bool is_diverged = false;  // the error: vectors are not finite
};

// An image or sound as a picture of rows x columns tokens.
struct SourceImage {
  Image image;
  int64_t rows = 1, columns = 1;
};

// Error about one source of a call.
class SourceError : public Error {
 public:
  SourceError(size_t index, const std::string& reason);

  size_t index() const { return index_; }  // in the sources of the call, from 0
  const std::string& reason() const { return reason_; }

 private:
  size_t index_;
  std::string reason_;
};

// A model for inference. A source is a text, a set or a molecule. If the model reads images or
// sounds, a source is the name of an image file (or "images.idx:17") or of a sound file.
//
// Thread-safe: calls only read the weights, and share the model's threads in turn. On the CPU an
// answer is bit-identical, with its scores and weights, whatever the other sources, their order,
// the number of threads and other calls are.
//
// Errors of all calls: SourceError on a source that is not UTF-8, cannot be read or names a
// language that was not in training. With ModelOptions::strict also on a source that is too long.
// Answers to the sources before it are delivered first.
class Model {
 public:
  // Loads a folder written by `attend train` or train_model(). Error if the folder holds no model
  // or a damaged one; the message names the file and the remedy.
  explicit Model(const std::string& folder, const ModelOptions& options = {});

  // Uses a network in memory with its vocabularies (attend/models/pair_model.h), e.g. during
  // training. The network is shared, and placed as `options` say. Answers use its current weights:
  // make a new Model after they change. A network that samples in training must be in eval() mode.
  explicit Model(PairModel model, const ModelOptions& options = {});

  // Several models with equal vocabularies that answer as one: probabilities and weights are means
  // over the models. Error if there are none or the vocabularies differ.
  static Model ensemble(const std::vector<std::string>& folders, const ModelOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Answers each source; a language model continues it. `prefixes`: optional beginnings of the
  // answers, one per source.
  // Error on options out of range, and on UnknownTokens::copy if the model does not attend to text.
  // SourceError on a prefix with an unknown token or with more tokens than the model has positions.
  std::vector<Answer> answer(const std::vector<std::string>& sources, const SearchOptions& options,
                             const std::vector<std::string>& prefixes = {}) const;

  // As above, with search_options().
  std::vector<Answer> answer(const std::vector<std::string>& sources) const;

  // Options of the model's folder (decode.* of config.toml). An ensemble has the options of
  // its first model.
  SearchOptions search_options() const;

  // Error if a search option is out of range or does not apply to the model.
  void check(const SearchOptions& options) const;

  // Answers requests with equal options. Calls Sink::done with each answer as soon as it and all
  // earlier ones are ready, on the calling thread, in the order of the requests. If done() throws,
  // the call ends. Error if options differ.
  void answer_each(std::vector<Request> requests) const;

  // Answers requests with equal options as they arrive, on one of the model's threads. Calls
  // `arrivals` with the number of requests in progress before it starts, and between steps while
  // more requests can join. Returns when no requests are left; takes no more while other calls wait
  // for the thread. Calls Sink::done with each answer as soon as it is ready, on that thread. With
  // ModelOptions::skip_bad a bad source or prefix does not end the call.
  using Arrivals = std::function<std::vector<Request>(size_t answering)>;
  void answer_arriving(const Arrivals& arrivals) const;

  // Labels of a classifier, of one label or of several; empty for other models.
  std::vector<std::string> labels() const;
  // Labels of each source, the most probable first, each with its probability. Error if the model
  // has no labels.
  std::vector<std::vector<TokenProbability>> classify(
      const std::vector<std::string>& sources) const;

  // Numbers answered to each source, in the unit of training; empty for blank sources. Error if the
  // model does not answer numbers.
  std::vector<std::optional<double>> numbers(const std::vector<std::string>& sources) const;

  // PairFiles::check for lines with the right number of labels; null if the model does not answer
  // labels.
  PairCheck label_check() const;

  // Error if the model answers labels and a target is not one of them. `name`: file name for the
  // message.
  void check_labels(const std::vector<Example>& examples, const std::string& name,
                    const Tell& remark = nullptr) const;

  // Log probability of each target of each example, in order, with EOS. Error if answers are
  // numbers.
  std::vector<double> log_probabilities(const std::vector<Example>& examples) const;

  // Tokens of a text, each with its log probability given the tokens before it and the
  // `alternatives` most probable tokens at its position. Error if the model does not continue
  // texts, and if the text is longer than the model reads.
  std::vector<ScoredToken> scored(const std::string& text, int64_t alternatives = 0) const;

  // The `most` most probable tokens for each occurrence of `mask` in `text`. Error if the model was
  // not trained to fill masks (type encoder), and if the text is longer than the model reads.
  std::vector<std::vector<TokenProbability>> fill(const std::string& text,
                                                  const std::string& mask = default_mask,
                                                  int64_t maximum = 5) const;

  // Vectors of the encoder, or of the layers of a language model, for each source. Error for
  // ensembles, and on vectors that are not finite.
  // Sentence encoders put their usual prompt before each text.
  std::vector<Embedding> embed(const std::vector<std::string>& sources) const;
  // As above, with this prompt instead of the usual one; empty: no prompt. Empty sources stay
  // empty.
  std::vector<Embedding> embed(const std::vector<std::string>& sources,
                               const std::string& prompt) const;

  // The text of a sentence encoder's prompt, such as "query: "; an empty name means the usual
  // prompt, which may be empty. Error on an unknown name.
  std::string prompt(const std::string& name = "") const;
  // Names of the prompts of a sentence encoder.
  std::vector<std::string> prompt_names() const;

  // Tokens of a text, including tokens after maximum_source_length(). Error if the text is not
  // UTF-8, and if sources are not texts.
  std::vector<SourceToken> tokenise(const std::string& text) const;
  // The text with these token ids, as tokenise() returns them. Error on an unknown id, and if the
  // model reads no text as these tokens.
  std::string source_text(const std::vector<int64_t>& ids) const;
  // Decodes token ids to text, without special tokens, even if the model would tokenise that text
  // otherwise. Error on an unknown id, and if sources are not texts.
  std::string decoded(const std::vector<int64_t>& ids) const;

  // Tokens of a text, truncated to maximum_source_length(), with their positions in the text.
  // Positions are empty if the model lacks an imported tokenizer.
  std::vector<SourceToken> tokens_read(const std::string& text) const;
  // Readable texts of an Answer's tokens, of its source and of a candidate. Names of byte-level
  // tokens are decoded: "\u0120cat" is " cat".
  std::vector<std::string> source_texts(const std::vector<std::string>& tokens) const;
  std::vector<std::string> answer_texts(const std::vector<std::string>& tokens) const;

  int64_t threads() const;                // for all calls together
  const std::string& type() const;        // model.type
  const TextConfig& text() const;         // data.*: how texts become tokens
  bool attends() const;                   // whether answers have weights
  std::string no_weights_reason() const;  // the responsible setting; empty if the model attends
  // The kind of answers. Labels support classify(), filled texts fill(), vectors only embed().
  const AnswerKind& answer_kind() const;
  // Pooling of token vectors into the vector of a text: mean, or cls for the first token.
  std::string pooling() const;
  bool has_source_image() const;  // sources are images, sets of images, or sounds
  // Maximum number of tokens of an answer to a source of `source_tokens` tokens.
  int64_t longest_answer(int64_t source_tokens, const SearchOptions& options = {}) const;
  // In tokens. A longer source loses its last tokens, or its first ones if AnswerKind::keeps_end(),
  // or if its tokenizer truncates on the left.
  int64_t maximum_source_length() const;
  // Picture of a source. Error if sources are not images or sounds, and on a file that cannot be
  // read.
  SourceImage source_image(const std::string& source) const;

 private:
  friend class Predictor;
  explicit Model(std::unique_ptr<Predictor> predictor);
  const PairModel& parts() const;

  std::unique_ptr<Predictor> predictor_;
};

}  // namespace attend
