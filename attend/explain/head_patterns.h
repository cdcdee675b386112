#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/nn/pass.h"

namespace attend {

class Explanation;

// Known patterns of self-attention heads, detected as in TransformerLens (`detect_head`, error
// measure "mul"): by the share of a head's weights on the keys of a pattern. Only rows that can see
// such a key count, since no other row can follow the pattern.
struct HeadPatternRow {
  const char* name;
  const char* meaning;
  const char* paper;
  // Keys of the pattern for each row, bool [n, n], given the tokens, int64 [n].
  at::Tensor (*keys)(const at::Tensor& tokens);
};

const std::vector<HeadPatternRow>& head_pattern_table();

// A head is named after a pattern if at least this share of its weights follows it.
constexpr double named_share = 0.5;

// Patterns of one head.
struct HeadPatterns {
  Site site;
  int64_t head = 0;                 // from 0
  std::vector<double> shares = {};  // per row of the table, 0 to 1

  // Row of the largest share if that is at least named_share; else null.
  const HeadPatternRow* name() const;
};

// Returns the shares [heads, patterns] of weights [heads, n, n] over these tokens. `scope` has the
// shape of the weights. Only rows with a key of the pattern and another key in scope count. The
// share of a head without such rows is 0.
at::Tensor pattern_shares(const at::Tensor& weights, const at::Tensor& scope,
                          const at::Tensor& tokens);

// Returns the subject with a source of random distinct tokens, drawn with a fixed seed and then
// repeated: up to 50 in all. The answer of a decoder is replaced likewise. Returns the subject
// unchanged if the model reads no tokens or a graph, or if too few tokens fit.
Subject with_repeated_tokens(const Explanation& explanation);

// Returns the patterns of one head from `all`; without shares if `all` lacks the head.
HeadPatterns patterns_of(const std::vector<HeadPatterns>& all, const Site& site, int64_t head);

// "induction 0.87"; empty if the head has no name.
std::string named_pattern(const HeadPatterns& head);

// Returns the patterns of every self-attention head that forms weights, measured on
// with_repeated_tokens(). Empty for a graph, since its nodes have no order.
std::vector<HeadPatterns> head_patterns(const Explanation& explanation);

}  // namespace attend
