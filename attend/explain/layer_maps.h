#pragma once

#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/nn/pass.h"

namespace attend {

// Sequence that tokens belong to. Two sequences may have the same tokens.
enum class Sequence {
  source,
  answer,    // the answer, one token per row
  answered,  // the part of the answer that a decoder has read
  text,      // a language model's text: the source, then the answer
};

// Map of one attention of a network, with readable names.
struct LayerMap {
  std::string name;                        // "encoder 2", "decoder 1 over the source", "pooling"
  std::vector<std::string> rows, columns;  // tokens; padding, class and start tokens in <>
  at::Tensor weights;                      // [heads, rows, columns], on the CPU
  Site site = {};                          // its place in the network

  Sequence row_sequence() const;
  Sequence column_sequence() const;
};

// Whether the rows and the columns of an attention are one sequence.
bool is_self_attention(const Site& site);

// Returns the map of one attention of a traced answer. Error if it forms no weights.
LayerMap map_of(const Subject& subject, const TracedAttention& attention);

// Returns the maps of all attentions of a traced answer that form weights, in order of computation.
std::vector<LayerMap> layer_maps(const Subject& subject, const NetworkTrace& trace);

// Words made of pieces, and the {first, count} of the pieces of each. Tokens are pieces as
// byte-pair encoding writes them, "econ@@", "omic".
struct WordGroups {
  std::vector<std::string> words;
  std::vector<std::pair<int64_t, int64_t>> pieces;
};
WordGroups group_words(const std::vector<std::string>& tokens);

// Merges a map [.., rows, columns] of pieces into one of words: averages rows, adds up columns.
at::Tensor merge_words(const at::Tensor& map, const WordGroups& rows, const WordGroups& columns);
LayerMap merge_words(const LayerMap& map);

// Returns hard alignments, "0-0 1-2 ...": for each target token, the source token of the largest
// score.
std::string pharaoh(const at::Tensor& scores);

}  // namespace attend
