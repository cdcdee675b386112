#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"

namespace attend {

// What is shown of an answer.
enum class ExplanationView {
  alignment,  // what each token of the answer came from, by a method
  heads,      // each head of one layer
  model,      // each head of every layer
  graph,      // all layers as one graph of tokens
  lens,       // what would be answered behind each layer
  effects,    // what the answer loses without each head
};
inline EnumNames names_of(ExplanationView) {
  return {"alignment", "heads", "model", "graph", "lens", "effects"};
}

// What a method shall look at. A number below 1 or one that does not exist is an Error.
struct MethodChoice {
  std::optional<int64_t> layer = {};  // from 1; else the last
  std::optional<int64_t> head = {};   // from 1; else the mean, or the sum, of all
  // Places in the answer, from 0. Methods of gradients compute only these, and the scores of the
  // others are then 0; empty: all.
  std::vector<int64_t> tokens = {};
  // How often methods that compute the network for each token of the source do so at most. Where
  // there are more tokens, neighbours are taken together, and each has an even share. 0: what takes
  // half a minute or so on two cores.
  int64_t most_passes = 0;
};

// What takes the place of what a head gives where it is switched off.
enum class Ablation {
  zero,  // Michel et al. 2019
  mean,  // what it gives on average over the places of the answer that is explained
};
inline EnumNames names_of(Ablation) { return {"zero", "mean"}; }

// The options of `attend explain`.
struct ShowOptions {
  ExplanationView view = ExplanationView::alignment;
  std::string method = {};  // a name of method_table(); empty: default_method()
  MethodChoice choice = {};
  bool words = false;                  // pieces of words, written with @@, are joined
  bool evidence = false;               // the map of the method is tested
  Ablation ablation = Ablation::zero;  // of heads that are switched off
};

}  // namespace attend
