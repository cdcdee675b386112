#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "attend/explain/show_options.h"
#include "attend/explain/subject.h"

namespace attend {

// What a method cannot do without.
enum class MethodNeeds {
  nothing,   // any network
  vectors,   // those of the source, to differentiate by
  weights,   // an attention that the answer is read off
  layers,    // layers of self-attention, whose weights are followed
  blocks,    // the same, and what each layer makes of its vectors
  stack,     // layers of one stack alone
  decoder,   // a decoder that reads its source, token by token
  features,  // vectors of an image or a sound
  parts,     // all that answers are read off, as sums over the vectors of the source
};

// What scores are of, which says what is compared where the answer is with another.
enum class ScoresOf {
  network,  // what it looks at or passes on, whatever token is asked about
  answer,   // log p_t; the difference of two answers' where two are compared
  answers,  // all that could have been answered
};

// What the scores of a method are.
enum class ScoreScale {
  weights,  // of attention, shown as they are
  lengths,  // 0 or more, shown as shares of their sum
  amounts,  // below 0 where they speak against the answer; magnitudes are shown as shares
};

// Which answers a method is shown of where none is named.
enum class DefaultFor {
  nothing,
  answers,       // of networks that attend
  comparisons,   // of an answer with another
  mixed_layers,  // labels and numbers, where layers add to what they read
};

// One way to say how much each token of a source mattered to each token of the answer.
struct MethodRow {
  const char* name;
  const char* formula;
  const char* meaning;
  const char* paper;
  const char* cost;  // in passes: T tokens of the answer, S of the source
  MethodNeeds needs;
  ScoresOf what;
  ScoreScale scale;
  bool takes_head;  // heeds MethodChoice
  // Takes the time of many passes, so that a page of a long source has it only where it is named.
  bool takes_long;

  // Whether the scores come from weights, so that tests of the weights are tests of the map.
  bool reads_weights() const {
    return needs == MethodNeeds::weights || needs == MethodNeeds::layers ||
           needs == MethodNeeds::blocks || needs == MethodNeeds::stack ||
           needs == MethodNeeds::decoder;
  }
  // [T, S] of the target's tokens, EOS included.
  at::Tensor (*scores)(const Subject& subject, const NetworkTrace& trace,
                       const MethodChoice& choice);
  // Where the scores may differ from 0 for some weights, bool [T, S]; null: wherever the answer
  // can see.
  at::Tensor (*scope)(const Subject& subject, const NetworkTrace& trace,
                      const MethodChoice& choice) = nullptr;
  DefaultFor default_for = DefaultFor::nothing;
};

const std::vector<MethodRow>& method_table();

// Error with the nearest name where there is no such method.
const MethodRow& find_method(const std::string& name);

// The method that is shown of an answer where none is named; null where the network does not
// attend.
const MethodRow* default_method(const Subject& subject);

// Why the method says nothing about an answer that was computed like this; empty where it does.
std::string why_not(const MethodRow& method, const Subject& subject, const NetworkTrace& trace);

// Whether the layers of the subject's network add to what they read, so that methods which follow
// them keep a half for it.
bool layers_add(const Subject& subject);

// The scores [T, S] of a method, float64 on the CPU. Error where why_not() says so, and on a choice
// that does not exist. `trace` is the subject's.
at::Tensor method_scores(const MethodRow& method, const Subject& subject, const NetworkTrace& trace,
                         const MethodChoice& choice = {});
at::Tensor method_scores(const MethodRow& method, const Subject& subject,
                         const MethodChoice& choice = {});

// The tokens of the source that the method can speak of, bool [T, S] on the CPU: those in the scope
// of the weights that it reads; of a method that reads none, those that the answer depends on, or
// all where the network does not tell. Of choice.tokens alone, if there are some.
at::Tensor method_scope(const MethodRow& method, const Subject& subject, const NetworkTrace& trace,
                        const MethodChoice& choice = {});

// What scores are drawn as: weights, or shares of 1. A row of zeros stays.
at::Tensor drawn_scores(const MethodRow& method, const at::Tensor& scores);

}  // namespace attend
