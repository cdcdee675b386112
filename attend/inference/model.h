#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/data/image.h"
#include "attend/data/pairs.h"
#include "attend/data/text_config.h"
#include "attend/data/text_tokenizer.h"
#include "attend/decode/search_options.h"
#include "attend/nn/device_placement.h"
#include "attend/steps/weight_type.h"

namespace attend {

class Predictor;
struct PairModel;

struct ModelOptions {
  DevicePlacement placement = {};
  // What answers are computed with. bfloat16: weights, and the keys and values that steps keep, of
  // 8 bits and an exponent; int8: weights of a byte, and a scale for each unit. Both are faster and
  // a little off. Error where the model has no steps for such.
  WeightType weights = WeightType::float32;
  int64_t threads = 0;  // that compute, for all calls together; 0: one per core
  bool strict = false;  // a source longer than the model reads is an Error; otherwise truncated
  // A source that is an Error, or for which the model computes numbers that are not finite, ends no
  // call; its Answer or Embedding has the error.
  bool skip_bad = false;
};

// Name of the mask in texts of a model without a tokenizer of its own.
constexpr const char* default_mask = "[MASK]";

// A token that might stand where another does.
struct Rival {
  std::string token;
  double log_probability = 0;
};

// One answer to a source. One that is a number has no probabilities.
struct Candidate {
  std::string text;
  std::vector<std::string> tokens;        // without BOS and EOS
  std::vector<double> log_probabilities;  // of each token, and of the EOS that ended it
  double score = 0;                       // what candidates are ranked by
  double log_probability = 0;             // the sum
  bool complete = false;                  // false: cut at the longest length
  // [tokens][source tokens]: what each token attended to. Empty unless SearchOptions::with_weights,
  // and where the model does not attend.
  std::vector<std::vector<float>> weights = {};
  // What `text` spells, in the unit of training, where the model answers numbers.
  std::optional<double> number = {};
  // For each of log_probabilities the SearchOptions::rivals most probable tokens, best first, the
  // one that was taken among them where it is one; empty where none are asked for.
  std::vector<std::vector<Rival>> rivals = {};
};

// What a model answers to one source.
struct Answer {
  std::vector<std::string> source;    // the tokens that were read
  std::vector<std::string> unknown;   // those of them that the model does not know
  bool truncated = false;             // the source was longer than the model reads
  bool greyed = false;                // an image in colour was read in grey (data.colours = false)
  std::string error;                  // with ModelOptions::skip_bad: why there is no answer
  std::vector<Candidate> candidates;  // best first; none for an empty source
  bool is_diverged = false;           // the error is that numbers of the model are not finite

  // The first candidate. Error where there is none.
  const Candidate& best() const;
};

// Whom a call asks and tells about its sources, by their places in it. Both are called on the
// threads that compute, for several sources at once, and may call the model.
struct AnswerWatch {
  // Asked before each step of a source's answer. true: the answer ends with what it has by then, as
  // one that was cut, or without candidates. Other answers are the same to the last bit.
  std::function<bool(size_t source)> is_stopped = {};
  // Told each time that an answer has got a token that stays, with what there is of it: texts,
  // tokens and probabilities. Beams, which may still choose another beginning, tell nothing.
  // `answer`: which of those that are drawn, else 0.
  std::function<void(size_t source, size_t answer, const Candidate& so_far)> grows = {};
};

// A source that is answered as it comes, beside others, and who waits for its answer. The functions
// are called on the thread that computes.
struct ArrivingSource {
  std::string source;
  std::string prefix = {};  // the beginning of the answer
  uint64_t number = 0;      // of the source in its request, by which its random numbers differ
  std::function<bool()> is_stopped = {};                                   // as AnswerWatch's
  std::function<void(size_t answer, const Candidate& so_far)> grows = {};  // the same
  std::function<void(Answer answer)> take = {};
};

struct TokenProbability {
  std::string token;
  double probability = 0;
};

// A token of a source.
struct SourceToken {
  int64_t id = 0;  // of the model's own tokenizer (TextCodec::outer_id)
  std::string text;
  bool is_known = true;     // false: the model reads it as unknown
  bool is_special = false;  // the tokenizer adds it to every text, such as [CLS]
  TokenPlace place = {};    // the part of the text that it stands for, of tokens_read()
};

// A token of a text, and its probability given those before it.
struct ScoredToken {
  std::string token;
  std::optional<double> log_probability = {};  // none for the first token of the text
  std::vector<Rival> rivals = {};              // the most probable tokens in its place, best first
  size_t offset = 0;                           // in the text of all tokens, in characters
};

// The vectors of a source's tokens, row by row, and that of the source.
struct Embedding {
  std::vector<std::string> tokens;
  int64_t depth = 0;
  std::vector<float> vectors;  // [tokens, depth]
  // [depth], or of model.text_depth or model.text_cut numbers: the mean over the tokens, or what
  // the model was trained to tell texts by; empty where there are no tokens.
  std::vector<float> whole;
  bool truncated = false;    // the source was longer than the model reads
  std::string error = {};    // with ModelOptions::skip_bad: why there are no vectors
  bool is_diverged = false;  // the error is that vectors are not finite
};

// A source that is an image or a sound, as a picture of rows x columns tokens.
struct SourceImage {
  Image image;
  int64_t rows = 1, columns = 1;
};

// Error about one source of a call.
class SourceError : public Error {
 public:
  SourceError(size_t index, const std::string& reason);

  size_t index() const { return index_; }  // in the call's sources, from 0
  const std::string& reason() const { return reason_; }

 private:
  size_t index_;
  std::string reason_;
};

// A model, ready for use. A source is a text, a set, a molecule or, for a model that reads images
// or sounds, the name of an image's file (or "images.idx:17") or of a sound's.
//
// Any number of threads may call one model at once: its weights are only read, and all calls share
// its threads, taking turns. On the CPU the answer to a source, its scores and weights included,
// does not depend on the sources beside it, their order, the number of threads or other calls, to
// the last bit.
//
// Errors of all calls: SourceError on a source that is not UTF-8, that cannot be read or that names
// a language which was not in training, and, with ModelOptions::strict, on one that is too long.
// Answers to the sources before it are told first.
class Model {
 public:
  // A folder that `attend train` or train_model() made. Error on a folder that holds no model or a
  // damaged one; the message names the file and the remedy.
  explicit Model(const std::string& folder, const ModelOptions& options = {});

  // A network in memory with its vocabularies (attend/models/pair_model.h), such as one in
  // training. It is shared, and placed where `options` say. Answers are those of the weights of
  // this moment: after they have changed, make another. What draws in training is in eval() mode.
  explicit Model(PairModel model, const ModelOptions& options = {});

  // Several models of the same vocabularies that answer as one: probabilities and weights are the
  // means of theirs. Error on none and on other vocabularies.
  static Model ensemble(const std::vector<std::string>& folders, const ModelOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // An answer for each source; a language model continues the source. `prefixes`, where there are
  // any, are the beginnings of the answers, one per source. Error on options out of range and on
  // UnknownTokens::copy where the model attends to no text; SourceError on a prefix with a token
  // that the model does not know, or with more than it has positions for.
  std::vector<Answer> answer(const std::vector<std::string>& sources, const SearchOptions& options,
                             const std::vector<std::string>& prefixes = {}) const;

  // The same with search_options().
  std::vector<Answer> answer(const std::vector<std::string>& sources) const;

  // Returns the options that the model's folder asks for (decode.* of config.toml); of an ensemble
  // those of the first model.
  SearchOptions search_options() const;

  // As answer(), but calls `take` with each answer as soon as it and those before it are there, on
  // the calling thread, in the order of the sources. `take` may call the model. What it throws ends
  // the call, and it is not called again. `watch` learns more, and can end answers.
  using Take = std::function<void(size_t index, Answer answer)>;
  void answer_each(const std::vector<std::string>& sources, const SearchOptions& options,
                   const std::vector<std::string>& prefixes, const Take& take,
                   const AnswerWatch& watch = {}) const;

  // Answers sources as they come, each as answer_each() does, on one of the model's threads. Asks
  // for further sources before it begins and between steps, as long as others can join those that
  // are being answered, whose number it tells; ends where there are none, or where other calls
  // wait for the thread. Each answer is told as soon as it is there. Error on options out of range;
  // with ModelOptions::skip_bad a source or prefix that is an Error ends no call.
  using Arrivals = std::function<std::vector<ArrivingSource>(size_t answering)>;
  void answer_arriving(const SearchOptions& options, const Arrivals& arrivals) const;

  // The labels of a classifier; of other models none.
  std::vector<std::string> labels() const;
  // Gives each source's labels, the most probable first. Error where the model has no labels.
  std::vector<std::vector<TokenProbability>> classify(
      const std::vector<std::string>& sources) const;

  // The number that the model answers to each source, in the unit of training; none to a blank one.
  // Error where the model answers no numbers.
  std::vector<std::optional<double>> numbers(const std::vector<std::string>& sources) const;

  // What PairFiles::check is of lines with as many labels as the model answers; null where it
  // answers none.
  PairCheck label_check() const;

  // Error where the model answers labels and a target is none of them; `name` is the file's, for
  // the message.
  void check_labels(const std::vector<Example>& examples, const std::string& name,
                    const Tell& remark = nullptr) const;

  // The log probability of each target of each example, in order, EOS included. Error where
  // answers are numbers.
  std::vector<double> log_probabilities(const std::vector<Example>& examples) const;

  // The tokens of a text, each with its log probability given those before it, and the `rivals`
  // most probable tokens in its place. Error if the model does not continue texts, and on a text
  // that is longer than it reads.
  std::vector<ScoredToken> scored(const std::string& text, int64_t rivals = 0) const;

  // Returns the `most` most probable tokens for each occurrence of `mask` in `text`. Error where
  // the model has not learned that (type encoder), and on a text that is longer than the model
  // reads.
  std::vector<std::vector<TokenProbability>> fill(const std::string& text,
                                                  const std::string& mask = default_mask,
                                                  int64_t most = 5) const;

  // The vectors of the encoder, or of the layers of a language model, for each source. Error for
  // ensembles, and on vectors that are not finite.
  std::vector<Embedding> embed(const std::vector<std::string>& sources) const;

  // The tokens of a text, those beyond maximum_source_length() included. Error on a text that is
  // not UTF-8, and where sources are no texts.
  std::vector<SourceToken> tokenise(const std::string& text) const;
  // The text whose tokens have these ids, as tokenise() gives them. Error if there is none: on an
  // id that no token has, and on tokens that are no way in which the model reads a text.
  std::string source_text(const std::vector<int64_t>& ids) const;
  // The text of tokens with these ids, special tokens left out, whether or not the model reads a
  // text as these. Error on an id that is no token's, and where sources are no texts.
  std::string decoded(const std::vector<int64_t>& ids) const;

  // The same tokens as tokenise(), as many as the model reads, with their places in the text.
  // Places are empty if the model has no tokenizer of another's model.
  std::vector<SourceToken> tokens_read(const std::string& text) const;
  // Readable texts of an Answer's tokens, of its source and of a candidate: those of byte-level
  // tokenizers name bytes, so that "\u0120cat" is " cat".
  std::vector<std::string> source_texts(const std::vector<std::string>& tokens) const;
  std::vector<std::string> answer_texts(const std::vector<std::string>& tokens) const;

  int64_t threads() const;             // that compute, for all calls together
  const std::string& type() const;     // model.type
  const TextConfig& text() const;      // data.*: how texts become tokens
  bool attends() const;                // whether answers have weights
  std::string why_no_weights() const;  // the setting that says so; empty where it attends
  bool answers_labels() const;         // classify() works
  bool answers_numbers() const;        // numbers() works
  bool fills() const;                  // fill() works
  bool embeds() const;                 // it answers vectors only: embed() works, answer() does not
  // Pooling of token vectors into the vector of a text: mean, or cls for the first token.
  std::string pooling() const;
  bool tags() const;              // an answer has a label for each token of its source
  bool continues() const;         // an answer continues its source
  bool ranks() const;             // an answer is the item that follows those of its source
  bool has_source_image() const;  // of sources that are images, sets of them or sounds
  // Maximum number of tokens of an answer to a source of so many tokens.
  int64_t longest_answer(int64_t source_tokens, const SearchOptions& options = {}) const;
  int64_t maximum_source_length() const;  // in tokens; the model reads the first of a longer one,
                                          // or the last where the model continues it
  // The picture of a source. Error where there is none of such sources, or on a file that cannot be
  // read.
  SourceImage source_image(const std::string& source) const;

 private:
  friend class Predictor;
  explicit Model(std::unique_ptr<Predictor> predictor);
  const PairModel& parts() const;

  std::unique_ptr<Predictor> predictor_;
};

}  // namespace attend
