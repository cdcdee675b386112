#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "attend/nn/learned_attention.h"
#include "attend/nn/linear.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/pass.h"

namespace attend {

// Heads with the same mechanism, computed by one call of attention().
struct HeadGroup {
  AttentionChoices choices = {};
  int64_t heads = 1;
  int64_t key_heads = 0;  // number of key and value heads, each shared by heads / key_heads query
                          // heads (Ainslie et al. 2023); must divide heads. 0: one per head
  bool rotary = false;    // queries and keys are rotated by position: rotate() in positions.h
  double rotary_base = 10000;
};

// Which positions may attend to which, for example bonded atoms of a molecule.
struct Neighbours {
  Scope scope;       // edges() with one list per batch entry
  at::Tensor kinds;  // int64 [B, E], edge kinds in list order; E: length of the longest list
};

struct MultiHeadConfig {
  int64_t depth = 0;         // depth of queries and of the output
  int64_t source_depth = 0;  // depth of the vectors that keys and values are made from; 0: depth
  std::vector<HeadGroup> groups = {};  // at least one; heads are numbered across all groups
  int64_t head_depth = 0;              // 0: depth / heads, which must divide it
  int64_t attention_depth = 0;         // see AttentionSizes; 0: head_depth
  int64_t keys = 0;                    // see AttentionSizes: positions of the location score
  double dropout = 0;                  // applies to the weights; only with a generator
  int64_t neighbour_kinds = 0;  // number of edge kinds in Neighbours. Every head learns a bias per
                                // kind, initially 0. 0: no Neighbours
};

// Multi-head attention (Vaswani et al. 2017, 3.2.2) with heads of any mechanism. Queries, keys and
// values are linear maps of the inputs, split among the heads. The contexts of the heads are
// concatenated and mapped linearly. It is self-attention if query and source are the same. Query i
// has position i, and key j has position j of the source. Over a SharedSequence, the inputs are the
// positions of this process.
class MultiHeadAttention : public torch::nn::Module {
 public:
  // Error if the depth is not divisible among the heads, if there are Neighbours and heads depend
  // on positions, and as LearnedAttention.
  explicit MultiHeadAttention(const MultiHeadConfig& config);

  // query [B, Tq, depth], source [B, Tk, source_depth] -> [B, Tq, depth]. lengths [B] int64: source
  // lengths without padding; undefined: no padding. With a generator, weights are dropped and hard
  // heads draw. Each group of heads is one call of Pass::attention(). If `neighbours` is null,
  // choices and lengths define the scope of each query. Otherwise `neighbours` define it, and must
  // exclude padding.
  at::Tensor forward(const at::Tensor& query, const at::Tensor& source,
                     const at::Tensor& lengths = {}, const Pass& pass = {},
                     const Neighbours* neighbours = nullptr);

  // Cross-attention of a decoder: prepare() stores the source in a state, and any number of read()
  // calls use it. Results equal forward with all queries at once.
  MultiHeadState prepare(const at::Tensor& source, const at::Tensor& lengths = {},
                         const Pass& pass = {});
  at::Tensor read(const at::Tensor& query, MultiHeadState& state, const Pass& pass = {});

  // Self-attention of a decoder: appends x [B, T, depth], the next positions of a sequence, to the
  // state and lets them attend to it. Results equal forward over the whole sequence if no query
  // attends to later keys, for example with scope causal. If gradients are recorded, they flow
  // through the state, and each step copies the state.
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
  // Updates the state for later queries if `others_follow`.
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
