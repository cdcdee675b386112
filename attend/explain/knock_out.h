#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "attend/explain/explanation.h"
#include "attend/explain/show_options.h"
#include "attend/inference/evaluation.h"

namespace attend {

// Attention heads and edges that are switched off. The context of such a head is zeros or its mean,
// as Ablation says, whatever it attends to. This works for every mechanism, even if it forms no
// weights. An edge from a query to a key carries nothing while it is off; other edges keep their
// weights. Switching off all edges equals switching off the head (zero).

// Numbers from 1.
struct NumberRange {
  int64_t first = 1, last = std::numeric_limits<int64_t>::max();
  bool holds(int64_t number) const { return first <= number && number <= last; }
};

// A head, or the edges from some of its queries to some of its keys.
struct AttentionHead {
  Site site;
  int64_t head = 0;                                    // from 0
  std::optional<NumberRange> queries = {}, keys = {};  // positions; both empty: the whole head

  bool is_whole() const { return !queries && !keys; }
};

// Returns the name of an attention for choosing its heads: "encoder.2", "decoder.1.self",
// "decoder.1.source", "layer.3", "pooling".
std::string attention_key(const Site& site);

// Returns all heads of a traced answer.
std::vector<AttentionHead> heads_of(const NetworkTrace& trace);

// Returns the heads in `all` that match the names: an attention_key() and ".head.1", with numbers
// from 1 or ranges such as "1-3". Omitted parts mean all: "decoder.2.head.3" is head 3 of both
// attentions of that layer, "encoder" the whole encoder. An appended ".query.2.key.1-3" selects
// only edges; without ".query" from all queries, without ".key" to all keys. Error on a name that
// matches nothing; it begins with `option`.
std::vector<AttentionHead> named_heads(const std::vector<std::string>& names,
                                       const std::vector<AttentionHead>& all,
                                       const char* option = "without");

// Effect of switching off some heads on an answer.
struct KnockOut {
  std::string without;  // names of the heads
  // Log probability of the whole answer, EOS included, with all heads and without the named ones.
  // With a comparison, the difference to the other answer's; for a number, the number itself.
  double before = 0, after = 0;
  int64_t changed = 0;     // positions at which the most probable token changes
  int64_t places = 0;      // EOS included
  std::string new_answer;  // the model's answer without the heads
};

// Errors as named_heads() and Model, and on edges of an attention that forms no weights, on edges
// between positions that do not exist, and on the mean of edges. The subject must have been made
// from `text` and `search`.
KnockOut knock_out(const Explanation& explanation, const std::string& text,
                   const SearchOptions& search, const std::vector<std::string>& names,
                   Ablation ablation = Ablation::zero);

// Error if the options ask for a map or a view, which knock_out() does not make.
void check_takes_no_map(const ShowOptions& options);

// {"without", "before", "after", "changed", "places", "answer"}.
std::string knock_out_json(const KnockOut& effect);

// Difference of KnockOut::before and KnockOut::after for each head by itself.
struct HeadEffect {
  AttentionHead head;
  double effect = 0;
};
std::vector<HeadEffect> head_effects(const Explanation& explanation,
                                     Ablation ablation = Ablation::zero, const Report& report = {});

}  // namespace attend
