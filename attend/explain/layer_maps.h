#pragma once

#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/nn/pass.h"

namespace attend {

// The sequence that tokens belong to. Two sequences may have the same tokens.
enum class Sequence {
  source,
  answer,    // what is answered, one token per row
  answered,  // what a decoder has read of it
  text,      // of a language model: the source and then the answer
};

// What one attention of a network looked at, as people read it.
struct LayerMap {
  std::string name;                        // "encoder 2", "decoder 1 over the source", "pooling"
  std::vector<std::string> rows, columns;  // tokens; those of padding, class and start in <>
  at::Tensor weights;                      // [heads, rows, columns], on the CPU
  Site site = {};                          // where in the network it is

  Sequence row_sequence() const;
  Sequence column_sequence() const;
};

// All layers of a traced answer whose attention forms weights, in the order of their computation.
std::vector<LayerMap> layer_maps(const Subject& subject, const NetworkTrace& trace);

// Pieces of words that belong together, and their names: {first, count} each. Tokens are pieces as
// byte-pair encoding writes them, "econ@@", "omic".
struct WordGroups {
  std::vector<std::string> words;
  std::vector<std::pair<int64_t, int64_t>> pieces;
};
WordGroups group_words(const std::vector<std::string>& tokens);

// A map [.., rows, columns] of pieces as one of words: rows are averaged, columns added up.
at::Tensor merge_words(const at::Tensor& map, const WordGroups& rows, const WordGroups& columns);
LayerMap merge_words(const LayerMap& map);

// Hard alignments, "0-0 1-2 ...": for each target token the source token of the largest score.
std::string pharaoh(const at::Tensor& scores);

}  // namespace attend
