#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attend/explain/layer_maps.h"
#include "attend/explain/subject.h"

namespace attend {

// What heads of self-attention are known to do, found as TransformerLens finds it
// (`detect_head`, error measure "mul"): by the share of a head's weights that fall on the keys of a
// pattern. Only rows that can see such a key count: no other row can follow the pattern.
struct HeadPatternRow {
  const char* name;
  const char* meaning;
  const char* paper;
  // The keys that each row looks at, bool [n, n], by what token each place has, int64 [n].
  at::Tensor (*keys)(const at::Tensor& tokens);
};

const std::vector<HeadPatternRow>& head_pattern_table();

// Half of its weights on the keys of a pattern give a head its name.
constexpr double named_share = 0.5;

// What one head does.
struct HeadPatterns {
  Site site;
  int64_t head = 0;                 // from 0
  std::vector<double> shares = {};  // of each row of the table, 0 to 1

  // The row of the largest share, if that is named_share or more; null.
  const HeadPatternRow* name() const;
};

// The shares [heads, patterns] of weights [heads, n, n] over such tokens, within a scope of the
// same shape: of the weights of the rows with a key of the pattern in scope and another key. A head
// without such rows has a share of 0.
at::Tensor pattern_shares(const at::Tensor& weights, const at::Tensor& scope,
                          const at::Tensor& tokens);

// The subject with random tokens in place of its own, drawn without doubles by a seed of its own
// and then repeated, as far as the model reads tokens and answers such; else what it is. Up to 50,
// source and answer alike.
Subject with_repeated_tokens(const Subject& subject);

// Those of a head, found among others; without shares where they are not among them.
HeadPatterns patterns_of(const std::vector<HeadPatterns>& all, const Site& site, int64_t head);

// "induction 0.87"; empty where the head has no name.
std::string named_pattern(const HeadPatterns& head);

// The patterns of every head of self-attention that forms weights, read off
// with_repeated_tokens(). Empty for a graph, since its nodes have no order.
std::vector<HeadPatterns> head_patterns(const Subject& subject);

}  // namespace attend
