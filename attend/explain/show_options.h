#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"

namespace attend {

// View of an answer.
enum class ExplanationView {
  alignment,  // which source tokens each token of the answer came from, by a method
  heads,      // each head of one layer
  model,      // each head of every layer
  graph,      // all layers as one graph of tokens
  lens,       // predictions after each layer
  effects,    // loss of the answer without each head
  contacts,   // contacts of the source's tokens (contact_map())
  scores,     // one score of a head, as a sum over pairs of components (score_parts())
};
inline EnumNames names_of(ExplanationView) {
  return {"alignment", "heads", "model", "graph", "lens", "effects", "contacts", "scores"};
}

// Restricts a method. A number below 1 or one that does not exist is an Error.
struct MethodChoice {
  std::optional<int64_t> layer = {};  // from 1; empty: the last
  std::optional<int64_t> head = {};   // from 1; empty: the mean or sum of all
  // Positions in the answer, from 0; empty: all. Methods of gradients compute only these; the
  // scores of other positions are 0.
  std::vector<int64_t> tokens = {};
  // Maximum forward passes for per-token methods. For longer sources, neighbours form groups, and
  // each token gets an even share. 0: the number that takes about half a minute on two cores.
  int64_t max_passes = 0;
};

// Replacement of a switched-off head's context.
enum class Ablation {
  zero,  // Michel et al. 2019
  mean,  // its mean over all queries of the explained answer
};
inline EnumNames names_of(Ablation) { return {"zero", "mean"}; }

// Options of `attend explain`.
struct ShowOptions {
  ExplanationView view = ExplanationView::alignment;
  std::string method = {};  // a name of method_table(); empty: default_method()
  MethodChoice choice = {};
  bool words = false;     // join pieces of words, written with @@
  bool evidence = false;  // test the map of the method
  // For the view of scores: an edge of a head of self-attention, "encoder.3.head.5.query.7.key.2".
  std::string edge = {};
  Ablation ablation = Ablation::zero;  // for switched-off heads
};

}  // namespace attend
