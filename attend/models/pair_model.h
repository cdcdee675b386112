#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "attend/data/batches.h"
#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"
#include "attend/data/text_codec.h"
#include "attend/data/tokenised.h"
#include "attend/decode/search_options.h"
#include "attend/models/model_config.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"
#include "attend/text/vocabulary.h"

namespace attend {

// A network from texts to texts, with the conversion between texts and ids.
struct PairModel {
  TextConfig text;
  TextCodecs codecs;  // made from `text`
  ModelConfig config;
  SearchOptions decode = {};  // defaults of the folder
  Vocabulary source_vocabulary;
  Vocabulary target_vocabulary;
  std::shared_ptr<PairNetwork> network;
  // Maximum source length of the other models of an ensemble.
  int64_t ensemble_source_limit = std::numeric_limits<int64_t>::max();
  // Shared reader of all sources that name files; null: one reader per call.
  std::shared_ptr<FrameReader> frames = nullptr;
  // Graph of the nodes that source tokens name; null: no graph.
  std::shared_ptr<const NodeGraph> graph = nullptr;

  // A new network with weights drawn from LibTorch's default generator.
  std::shared_ptr<PairNetwork> make_network() const;

  const AnswerKind& answer_kind() const { return config.answer_kind(text); }

  // Whether source and target tokens have the same ids.
  bool has_one_vocabulary() const { return text.joint_vocabulary || answer_kind().fills(); }

  // Number of target tokens of the network, or number_targets.
  int64_t target_tokens() const {
    return answer_kind().has_probabilities() ? target_vocabulary.size() : number_targets;
  }
  TargetShape target_shape() const {
    if (answer_kind().is_probability()) return TargetShape::probability();
    return {target_tokens(), answer_kind().is_label_set()};
  }

  // Shape of the network's sources.
  SourceShape source_shape() const;

  // Maximum number of source tokens or frames; the rest is cut.
  int64_t maximum_source_length() const {
    return std::min(config.chosen().maximum_source_length(), ensemble_source_limit);
  }

  // Truncates a source to maximum_source_length() tokens; returns whether it was longer. Drops the
  // last tokens, except the closing tokens of each text. If the tokenizer truncates on the left,
  // drops the first tokens, except the opening tokens of each text. If
  // AnswerKind::keeps_end(), drops the very first tokens. The longer text of a pair is cut first
  // (kept_of_two); if answers are spans, only a first text over half of the maximum is cut. Updates
  // `second`, as in SourceTokens. Error if a pair's special tokens leave no room.
  template <class Token>
  bool truncate_source(std::vector<Token>& tokens, int64_t& second) const {
    const std::vector<TokenRange> excess = excess_tokens(std::ssize(tokens), second);
    for (auto range = excess.rbegin(); range != excess.rend(); ++range)
      tokens.erase(tokens.begin() + range->begin, tokens.begin() + range->end);
    for (const auto& [begin, end] : excess)
      if (begin < second) second -= end - begin;
    return !excess.empty();
  }
  // As above, for a source of one text.
  template <class Token>
  bool truncate_source(std::vector<Token>& tokens) const {
    int64_t second = std::ssize(tokens);
    return truncate_source(tokens, second);
  }
  // Ids of source tokens. Error if a language token was not in training.
  std::vector<int64_t> source_ids(const SourceTokens& tokens) const;
  // Id in the source vocabulary of an id of a source; they differ in the second text of a pair.
  int64_t vocabulary_id(int64_t source_id) const { return source_id % source_vocabulary.size(); }
  // Truncates frames [S, F] to the first maximum_source_length(); returns whether there were more.
  bool truncate_frames(at::Tensor& source) const;
  // Reader of sources that name files; null if sources are texts.
  std::shared_ptr<FrameReader> frame_reader() const;
  std::string target_text(const std::vector<int64_t>& ids) const;

  // One pair per target of each example; for a masked language model the source is the target.
  // Truncates sounds and texts to maximum_source_length() and adds the number of truncated sounds
  // to `cut`. Items of a history that were not in training are dropped. Error if a text is not
  // UTF-8, an image or sound is unreadable, or a number target is not a number. Error if the number
  // of a tagger's labels differs from the number of source tokens.
  std::vector<EncodedPair> encode(const TokenisedExamples& tokenised, int64_t* cut = nullptr) const;
  std::vector<EncodedPair> encode(const std::vector<Example>& examples) const;

  // Ids of a text of several lines. Error if the text is not UTF-8.
  std::vector<int64_t> encode_text(const std::string& text) const;

 private:
  struct TokenRange {
    int64_t begin, end;
  };
  // Ranges of tokens that truncate_source() drops, in order.
  std::vector<TokenRange> excess_tokens(int64_t tokens, int64_t second) const;
  void mark_second_text(std::vector<int64_t>& ids, int64_t second) const;
  void check_language(const std::string& token, int64_t id) const;
};

}  // namespace attend
