#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "attend/explain/explanation.h"
#include "attend/explain/show_options.h"

namespace attend {

// Requirement of a method.
enum class MethodNeeds {
  nothing,   // any network
  vectors,   // the source's vectors, to differentiate by
  weights,   // an attention that the answer is read from
  layers,    // layers of self-attention, to follow their weights
  blocks,    // the same, and the output of each layer
  stack,     // layers of a single stack, without a decoder
  decoder,   // a decoder that reads its source
  features,  // vectors of an image or a sound
  parts,     // logits as sums over the vectors of the source
};

// Object of the scores. Only `answer` supports a comparison of two answers.
enum class ScoresOf {
  network,  // its attention or flow of information, whatever the token
  answer,   // log p_t; with a comparison, the difference of both answers'
  answers,  // the whole distribution
};

// Kind and display of the scores.
enum class ScoreScale {
  weights,  // attention weights, shown as they are
  lengths,  // 0 or more, shown as shares of their sum
  amounts,  // negative if against the answer; shown as shares of their magnitudes
};

// Answers for which a method is the default.
enum class DefaultFor {
  nothing,
  answers,       // default for networks with attention
  unweighted,    // compared with another answer, or of networks without weights
  mixed_layers,  // labels and numbers, if layers add to their input
};

// A method that scores how much each source token mattered to each token of the answer.
struct MethodRow {
  const char* name;
  const char* formula;
  const char* meaning;
  const char* paper;
  const char* cost;  // in passes: T tokens of the answer, S of the source
  MethodNeeds needs;
  ScoresOf what;
  ScoreScale scale;
  bool takes_head;  // supports MethodChoice::layer and MethodChoice::head
  // Takes many passes: a page of a long source includes it only if it is named.
  bool takes_long;

  // Whether the scores come from weights, so that tests of the weights apply to the map.
  bool reads_weights() const {
    return needs == MethodNeeds::weights || needs == MethodNeeds::layers ||
           needs == MethodNeeds::blocks || needs == MethodNeeds::stack ||
           needs == MethodNeeds::decoder;
  }
  // Parts of the trace that the method reads.
  TraceParts traces() const {
    if (needs == MethodNeeds::blocks) return TraceParts::blocks;
    return reads_weights() ? TraceParts::attentions : TraceParts::vectors;
  }
  // [T, S] of the target's tokens, EOS included.
  at::Tensor (*scores)(const Subject& subject, const NetworkTrace& trace,
                       const MethodChoice& choice);
  // Keys with scores that may differ from 0 for some weights, bool [T, S]; null: all keys that the
  // answer depends on.
  at::Tensor (*scope)(const Subject& subject, const NetworkTrace& trace,
                      const MethodChoice& choice) = nullptr;
  DefaultFor default_for = DefaultFor::nothing;
};

const std::vector<MethodRow>& method_table();

// Error with the nearest name if `name` is not a method.
const MethodRow& find_method(const std::string& name);

// Returns the method that is shown by default.
const MethodRow& default_method(const Explanation& explanation);

// Returns why the method does not apply to an answer with this trace; empty if it does.
std::string refusal_reason(const MethodRow& method, const Subject& subject,
                           const NetworkTrace& trace);

// Whether the layers of the subject's network add to their input. Methods that follow layers then
// keep half for the input.
bool layers_add(const Subject& subject);

// Returns the scores [T, S] of a method, float64 on the CPU. Error if refusal_reason() is not
// empty, and on a choice that does not exist. `trace` is the subject's.
at::Tensor method_scores(const MethodRow& method, const Subject& subject, const NetworkTrace& trace,
                         const MethodChoice& choice = {});
at::Tensor method_scores(const MethodRow& method, const Explanation& explanation,
                         const MethodChoice& choice = {});

// Returns the source tokens that the method can score, bool [T, S] on the CPU: the tokens in scope
// of the weights that it reads. Methods that read no weights can score the tokens that the answer
// depends on, or all tokens if the network does not report its vectors. With choice.tokens, rows of
// other tokens may be false.
at::Tensor method_scope(const MethodRow& method, const Subject& subject, const NetworkTrace& trace,
                        const MethodChoice& choice = {});

// Returns scores for drawing: weights, or shares of 1. A row of zeros stays.
at::Tensor drawn_scores(const MethodRow& method, const at::Tensor& scores);

}  // namespace attend
