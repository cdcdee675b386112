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
#include "attend/data/vocabulary.h"
#include "attend/models/decode_config.h"
#include "attend/models/model_config.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"

namespace attend {

// A network from texts to texts, with what turns those into ids and back.
struct PairModel {
  TextConfig text;
  TextCodecs codecs;  // as `text` has them
  ModelConfig config;
  DecodeConfig decode = {};
  Vocabulary source_vocabulary;
  Vocabulary target_vocabulary;
  std::shared_ptr<PairNetwork> network;
  // What the models read that decode as one with it.
  int64_t others_read = std::numeric_limits<int64_t>::max();
  // Reads all sources that name files; null: each call has a reader of its own.
  std::shared_ptr<FrameReader> frames = nullptr;
  // Whose nodes the tokens of sources are; null: of none.
  std::shared_ptr<const NodeGraph> graph = nullptr;

  // A new network, its weights drawn from LibTorch's default generator.
  std::shared_ptr<PairNetwork> make_network() const;

  // Whether an answer is a number, in the unit of training, and whether it is a label.
  bool answers_numbers() const { return text.wants_numbers(); }
  bool answers_labels() const { return config.answers_labels() && !answers_numbers(); }

  // What the network's targets are: so many tokens, or number_targets.
  int64_t target_tokens() const {
    return answers_numbers() ? number_targets : target_vocabulary.size();
  }

  // What the network's sources are.
  SourceShape source_shape() const;

  // How many tokens, or frames, of a source are read.
  int64_t maximum_source_length() const {
    return std::min(config.chosen().maximum_source_length(), others_read);
  }

  // Truncates a source to maximum_source_length() tokens; returns whether it did.
  // Its last tokens are dropped, except those that close each text. If the tokenizer cuts at the
  // left, the first tokens are dropped, except those that open each text; if
  // ModelConfig::reads_end(), the first of all.
  template <class Token>
  bool truncate_source(std::vector<Token>& tokens) const {
    const int64_t over = std::ssize(tokens) - maximum_source_length();
    if (over <= 0) return false;
    const int64_t most = maximum_source_length();
    const int64_t opening = std::min(codecs.source.opening_tokens(), most);
    const int64_t closing = std::min(codecs.source.closing_tokens(), most);
    const bool left = codecs.source.cuts_left();
    auto first = left ? tokens.begin() + opening : tokens.end() - closing - over;
    if (config.reads_end()) first = tokens.begin();
    tokens.erase(first, first + over);
    return true;
  }
  // The ids of a source's tokens. Error on a language token that was not in training.
  std::vector<int64_t> source_ids(const std::vector<std::string>& tokens) const;
  // Truncates frames [S, F] to their first maximum_source_length(); returns whether it did.
  bool truncate_frames(at::Tensor& source) const;
  // Reads sources that name files. Null where sources are texts.
  std::shared_ptr<FrameReader> frame_reader() const;
  std::string target_text(const std::vector<int64_t>& ids) const;

  // One pair for each target of each example; for a masked language model the source is the target.
  // Truncates sounds and texts to maximum_source_length(); adds to `cut` how many sounds were
  // longer. Items of a history that were not in training are left out. Error on a text that is not
  // UTF-8, on an image or a sound that cannot be read, of a tagger on a source that has not as many
  // labels as tokens, and where the model answers numbers on a target that is none.
  std::vector<EncodedPair> encode(const TokenisedExamples& tokenised, int64_t* cut = nullptr) const;
  std::vector<EncodedPair> encode(const std::vector<Example>& examples) const;

  // The ids of a text of several lines. Error on a text that is not UTF-8.
  std::vector<int64_t> encode_text(const std::string& text) const;

 private:
  void check_language(const std::string& token, int64_t id) const;
};

}  // namespace attend
