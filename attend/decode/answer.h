#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/error.h"

namespace attend {

// A possible token at a position of an answer.
struct Alternative {
  int64_t id = 0;  // in the vocabulary of answers
  double log_probability = 0;
  std::string token = {};

  bool operator==(const Alternative&) const = default;
};

// Part of a text, in characters.
struct CharacterSpan {
  int64_t begin = 0, end = 0;

  bool operator==(const CharacterSpan&) const = default;
};

// One answer to a source. A Search sets ids and numbers; a Model also the texts. Numbers have no
// probabilities.
struct Candidate {
  std::string text;
  std::vector<std::string> tokens;        // without BOS and EOS
  std::vector<int64_t> ids;               // token ids in the vocabulary of answers
  std::vector<double> log_probabilities;  // per token, and of the final EOS
  double score = 0;                       // ranks the candidates; spans have their probability
  double log_probability = 0;  // sum of log_probabilities; for a set of labels of the whole set
  bool complete = false;       // false: cut at the maximum length without EOS, or stopped
  // [tokens][source tokens]: attention weights of each token. Empty without
  // SearchOptions::with_weights and if the model does not attend.
  std::vector<std::vector<float>> weights = {};
  // Value of `text` in the unit of training, if the model answers numbers.
  std::optional<double> number = {};
  // Place of `text` in the second text of the source, if answers are parts of it; 0 to 0 for an
  // empty answer.
  std::optional<CharacterSpan> span = {};
  // All labels, most probable first, if an answer is any number of labels.
  std::vector<Alternative> labels = {};
  // Per entry of log_probabilities: the SearchOptions::alternatives most probable tokens, best
  // first, including the chosen one if it is among them; for a token of the prefix only that token.
  // Empty if none were requested.
  std::vector<std::vector<Alternative>> alternatives = {};
};

// The model's answers to one source.
struct Answer {
  std::vector<std::string> source;    // tokens that were read
  std::vector<std::string> unknown;   // tokens of the source unknown to the model
  bool truncated = false;             // the source was longer than the model reads
  bool converted_to_grey = false;     // a colour image was read in grey (data.colours = false)
  std::string error;                  // reason for no answer, with ModelOptions::skip_bad
  std::vector<Candidate> candidates;  // best first; empty for an empty source
  bool is_diverged = false;           // the error: numbers of the model are not finite

  // The first candidate. Error if there are none.
  const Candidate& best() const {
    if (candidates.empty()) fail("[answer] an empty source has no answer; give a source");
    return candidates.front();
  }
};

}  // namespace attend
