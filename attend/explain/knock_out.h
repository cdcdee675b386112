#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/inference/evaluation.h"

namespace attend {

// Heads of attention that are switched off: what such a head gives is zero, whatever it looks at
// (Michel et al. 2019). So it is with every mechanism, also with those that form no weights.

struct AttentionHead {
  Site site;
  int64_t head = 0;  // from 0
};

// What an attention is called where its heads are chosen: "encoder.2", "decoder.1.self",
// "decoder.1.source", "layer.3", "pooling".
std::string attention_key(const Site& site);

// All heads of a traced answer.
std::vector<AttentionHead> heads_of(const NetworkTrace& trace);

// Those of `all` that are named: an attention_key() and ".head.1", numbers from 1 or ranges of
// them, "1-3". What is left out means all: "decoder.2.head.3" is head 3 of both attentions of that
// layer, "encoder" the whole encoder. Error on a name that is of none of them.
std::vector<AttentionHead> named_heads(const std::vector<std::string>& names,
                                       const std::vector<AttentionHead>& all);

// What becomes of an answer without some heads.
struct KnockOut {
  std::string without;  // their names
  // The log probability of the whole answer, EOS included, with all heads and without those; where
  // it is compared with another, the difference to that one's; of a number that number itself.
  double before = 0, after = 0;
  int64_t changed = 0;     // of its places, those where another token is the most probable then
  int64_t places = 0;      // EOS included
  std::string new_answer;  // the model's then
};

// Error as named_heads(), and as Model. `text` and `search` are what the subject was made of.
KnockOut knock_out(const Subject& subject, const std::string& text, const SearchOptions& search,
                   const std::vector<std::string>& names, const AnswerWatch& watch = {});

// {"without", "before", "after", "changed", "places", "answer"}.
std::string knock_out_json(const KnockOut& told);

// KnockOut::before less KnockOut::after of each head alone.
struct HeadEffect {
  AttentionHead head;
  double effect = 0;
};
std::vector<HeadEffect> head_effects(const Subject& subject, const Report& report = {});

}  // namespace attend
