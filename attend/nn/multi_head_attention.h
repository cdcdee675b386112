#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "attend/nn/learned_attention.h"
#include "attend/nn/linear.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/pass.h"

namespace attend {

// Heads that attend in the same way: one call of attention().
struct HeadGroup {
  AttentionChoices choices = {};
  int64_t heads = 1;
  int64_t key_heads = 0;  // heads of keys and values, each shared by heads / key_heads queries
                          // (Ainslie et al. 2023); it divides heads. 0: one each
  bool rotary = false;    // queries and keys are turned by their positions: rotate() of positions.h
  double rotary_base = 10000;
};

// Whom the positions of each sequence see, as the atoms of a molecule see those that they are bound
// to.
struct Neighbours {
  Scope scope;       // edges() with a list for each batch entry
  at::Tensor kinds;  // int64 [B, E], of the edges of a list in their order, E of the longest
};

struct MultiHeadConfig {
  int64_t depth = 0;                   // of queries and of the output
  int64_t source_depth = 0;            // of what keys and values are made from; 0: as depth
  std::vector<HeadGroup> groups = {};  // at least one; heads are numbered through them
  int64_t head_depth = 0;              // 0: depth / heads, which must divide it
  int64_t attention_depth = 0;         // as AttentionSizes has it; 0: head_depth
  int64_t keys = 0;                    // the same: positions of the location score
  double dropout = 0;                  // of the weights, where there is a generator
  int64_t neighbour_kinds = 0;         // of edges between Neighbours, for each of which every head
                                       // learns a bias, at first 0; 0: there are no Neighbours
};

// Multi-head attention (Vaswani et al. 2017, 3.2.2) whose heads may be of any mechanism: queries,
// keys and values are linear maps of the inputs, split among the heads; the heads' contexts, one
// after another, go through another linear map. Self-attention where query and source are the same.
// Query i has position i, and key j of its source position j. Over a SharedSequence, queries and
// source are the positions that are here.
class MultiHeadAttention : public torch::nn::Module {
 public:
  // Error when the depths do not divide among the heads, when heads that go by positions would read
  // Neighbours, and as LearnedAttention.
  explicit MultiHeadAttention(const MultiHeadConfig& config);

  // query [B, Tq, depth], source [B, Tk, source_depth] -> [B, Tq, depth]; lengths [B] int64 says
  // where the source's padding begins, undefined: there is none. With a generator weights are
  // dropped and hard heads draw. Each group of heads is a call of Pass::attention(). Whom a query
  // sees say `neighbours`, which leave padding out, or, where they are null, choices and lengths.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& source,
                     const at::Tensor& lengths = {}, const Pass& pass = {},
                     const Neighbours* neighbours = nullptr);

  // A state that holds the source; then read() it, in any number of calls: cross-attention of a
  // decoder. The results are those of forward with all queries at once.
  MultiHeadState prepare(const at::Tensor& source, const at::Tensor& lengths = {},
                         const Pass& pass = {});
  at::Tensor read(const at::Tensor& query, MultiHeadState& state, const Pass& pass = {});

  // Adds x [B, T, depth], the next positions of a sequence, to the state, and lets them read it:
  // self-attention of a decoder. The results are those of forward of the whole sequence where no
  // query sees later keys, such as with scope causal. Where gradients are recorded they flow
  // through the state too, and a step then copies what it holds.
  at::Tensor step(const at::Tensor& x, MultiHeadState& state, const Pass& pass = {});

  // Whether the weights of any head depend on positions.
  bool is_positional() const;

 private:
  struct Group {
    HeadGroup config;
    int64_t first_head = 0, first_key_head = 0;
    std::shared_ptr<LearnedAttention> spec;
  };
  void append(const at::Tensor& source, MultiHeadState& state, const Pass& pass);
  // The state takes what later queries have to know of these where `others_follow`.
  at::Tensor attend(const at::Tensor& query, MultiHeadState& state, bool others_follow,
                    const Pass& pass, const Neighbours* neighbours = nullptr);
  Bias neighbour_bias(const Group& group, const Neighbours& neighbours) const;

  int64_t head_depth_;
  double dropout_;
  std::vector<Group> groups_;
  Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, output_{nullptr};
  at::Tensor neighbour_bias_;  // [neighbour_kinds, heads]; undefined: none
};

}  // namespace attend
