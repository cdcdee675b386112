#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "attend/explain/show_options.h"
#include "attend/explain/subject.h"
#include "attend/inference/evaluation.h"

namespace attend {

// Heads of attention, and edges of theirs, that are switched off. Whatever such a head looks at,
// its context is zeros or its mean, as Ablation says. So it is with every mechanism, also with
// those that form no weights. An edge from a query to a key that is off carries nothing, and other
// edges have the weights that they had: all edges off are the head off (zero).

// Numbers from 1.
struct NumberRange {
  int64_t first = 1, last = std::numeric_limits<int64_t>::max();
  bool holds(int64_t number) const { return first <= number && number <= last; }
};

// A head, or the edges from some of its queries to some of its keys.
struct AttentionHead {
  Site site;
  int64_t head = 0;                                    // from 0
  std::optional<NumberRange> queries = {}, keys = {};  // their places; both empty: the whole head

  bool is_whole() const { return !queries && !keys; }
};

// What an attention is called where its heads are chosen: "encoder.2", "decoder.1.self",
// "decoder.1.source", "layer.3", "pooling".
std::string attention_key(const Site& site);

// All heads of a traced answer.
std::vector<AttentionHead> heads_of(const NetworkTrace& trace);

// Those of `all` that are named: an attention_key() and ".head.1", numbers from 1 or ranges of
// them, "1-3". What is left out means all: "decoder.2.head.3" is head 3 of both attentions of that
// layer, "encoder" the whole encoder. ".query.2.key.1-3" behind it means edges alone; without
// ".query" those of all queries, without ".key" to all keys. Error on a name that is of none of
// them.
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

// Error as named_heads(), as Model, on edges of what forms no weights, on edges between places that
// do not exist, and on the mean of edges.
// `text` and `search` are what the subject was made of.
KnockOut knock_out(const Subject& subject, const std::string& text, const SearchOptions& search,
                   const std::vector<std::string>& names, Ablation ablation = Ablation::zero,
                   const AnswerWatch& watch = {});

// Error if the options ask for a map or a view, which knock_out() does not make.
void check_takes_no_map(const ShowOptions& options);

// {"without", "before", "after", "changed", "places", "answer"}.
std::string knock_out_json(const KnockOut& told);

// KnockOut::before less KnockOut::after of each head alone.
struct HeadEffect {
  AttentionHead head;
  double effect = 0;
};
std::vector<HeadEffect> head_effects(const Subject& subject, Ablation ablation = Ablation::zero,
                                     const Report& report = {});

}  // namespace attend
