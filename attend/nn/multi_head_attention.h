#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "attend/nn/distance_vectors.h"
#include "attend/nn/head_forms.h"
#include "attend/nn/head_group.h"
#include "attend/nn/key_indexer.h"
#include "attend/nn/learned_attention.h"
#include "attend/nn/linear.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/pass.h"
#include "attend/nn/rotation.h"
#include "attend/nn/score_mixer.h"
#include "attend/nn/segment_memory.h"
#include "attend/nn/shared_sequence.h"
#include "attend/nn/sparse_branches.h"

namespace attend {

// Which positions may attend to which, for example bonded atoms of a molecule.
struct Neighbours {
  Scope scope;       // edges() with one list per batch entry
  at::Tensor kinds;  // int64 [B, E], edge kinds in list order; E: length of the longest list
};

class MultiHeadAttention;

struct MultiHeadConfig {
  int64_t depth = 0;         // depth of queries and of the output
  int64_t source_depth = 0;  // depth of the vectors that keys and values are made from; 0: depth
  std::vector<HeadGroup> groups = {};  // at least one; heads are numbered across all groups
  int64_t head_depth = 0;              // 0: depth / heads, which must divide it
  int64_t attention_depth = 0;         // see AttentionSizes; 0: head_depth
  int64_t keys = 0;                    // see AttentionSizes: positions of the location score
  double dropout = 0;                  // applies to the weights; only with a generator
  int64_t layer = 0;                   // number of the layer, from 0: see HeadDifference
  // Attention with the same heads, scopes aside, that has the parameters of the biases. Null: these
  // heads have their own.
  const MultiHeadAttention* bias_owner = nullptr;
  // If not null, biases compare queries with these vectors after the map of keys. They compare keys
  // with these vectors after the map of queries. maps_distances: after separate maps. Each head
  // needs its own keys; latent heads are not supported.
  std::shared_ptr<DistanceVectors> distances = nullptr;
  bool maps_distances = false;
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

  // Whether states keep all keys, so that each step has weights.
  bool keeps_keys() const;

  // Whether the weights of any head depend on positions.
  bool is_positional() const;

 private:
  struct Group {
    HeadGroup config;
    int64_t first_head = 0, first_key_head = 0;
    std::shared_ptr<LearnedAttention> spec;
    std::shared_ptr<HeadDifference> difference = nullptr;  // null unless differential
    std::shared_ptr<LatentHeads> latent = nullptr;         // null without a latent depth
    std::shared_ptr<SparseBranches> branches = nullptr;    // null without sparse branches
    std::shared_ptr<KeyIndexer> indexer = nullptr;         // null if all keys are read
    std::shared_ptr<SegmentMemory> memory = nullptr;       // null without segments
    std::shared_ptr<ScoreMixer> mixer = nullptr;           // null if scores are not mixed
    Linear gate{nullptr};                                  // null unless gated
    Linear key_gates{nullptr};  // a number per head and key; null unless the bias reads the source
  };
  void make_forms(const MultiHeadConfig& config);
  void make_distances(const MultiHeadConfig& config);
  // The vectors of the biases of a group, as in Placement.
  std::map<BiasKind, at::Tensor> distance_vectors(const Group& group, const Pass& pass);
  void append_group(const Group& group, const at::Tensor& key, const at::Tensor& value,
                    const Runs& positions, MultiHeadState& state);
  void append(const at::Tensor& source, MultiHeadState& state, const Pass& pass);
  // Updates the state for later queries if `others_follow`.
  at::Tensor attend(const at::Tensor& query, MultiHeadState& state, bool others_follow,
                    const Pass& pass, const Neighbours* neighbours = nullptr);
  struct HeadCall {
    const at::Tensor& input;  // [B, Tq, depth]
    bool others_follow;
    const Neighbours* neighbours;
    const Pass& pass;
  };
  // Contexts [B, heads, Tq, Dv] of a group's queries [B, heads, Tq, .].
  at::Tensor contexts(const Group& group, const at::Tensor& query, MultiHeadState& state,
                      const HeadCall& call);
  // Chooses the keys of an indexer, and adds its objective to the pass, if it collects them.
  at::Tensor indexed_contexts(const Group& group, const AttentionCall& given,
                              const MultiHeadState& state, const HeadCall& call);
  // Contexts with the bias of selective heads, which depends on earlier queries.
  static at::Tensor selective_contexts(const AttentionCall& given, MultiHeadState::Group& held,
                                       int64_t offset, const HeadCall& call);
  // Contexts of the group's own segment and memory; `query` is not rotated.
  static at::Tensor memory_contexts(const Group& group, const AttentionCall& given,
                                    const at::Tensor& query, MultiHeadState& state,
                                    const HeadCall& call);
  // Contexts of mixed scores of the given queries and the ones before.
  at::Tensor mixed_contexts(const Group& group, const AttentionCall& given, MultiHeadState& state,
                            const HeadCall& call) const;
  at::Tensor latent_contexts(const Group& group, const at::Tensor& query, const at::Tensor& kept,
                             const AttentionSpec& spec, const Pass& pass) const;
  // The contexts [B, Tq, heads Dv] for the output map; `input` [B, Tq, depth]: the vectors of
  // the queries.
  static at::Tensor joined(Group& group, const at::Tensor& contexts, const at::Tensor& input,
                           const Pass& pass);
  Bias neighbour_bias(const Group& group, const Neighbours& neighbours) const;

  int64_t head_depth_, source_depth_;
  double dropout_;
  std::vector<Group> groups_;
  Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, output_{nullptr};
  std::shared_ptr<DistanceVectors> distances_;              // null: each group has its own vectors
  Linear distance_query_{nullptr}, distance_key_{nullptr};  // null: query_ and key_ map distances
  at::Tensor neighbour_bias_;  // [neighbour_kinds, heads]; undefined: none
};

}  // namespace attend
