#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "attend/ops/attention.h"

namespace attend {

class Communicator;
class Recurrence;
class SharedSequence;
class Watch;

enum class NetworkPart {
  none,  // outside the other parts
  encoder,
  decoder,  // reads the answer so far
  layers,   // layers of a language model; its text is the source, then the answer
  pooling,  // part of a classifier: many vectors to one
};

// Location of a computation in a network.
struct Site {
  NetworkPart part = NetworkPart::none;
  int64_t layer = 0;          // layer of the part, from 1; 0 outside of layers
  bool reads_source = false;  // the decoder reads its source

  bool operator==(const Site&) const = default;
};

// Vectors, one per token, that a watch may see or replace.
enum class WatchedVectors {
  input,         // embeddings of tokens or frames, before positions are added
  layer,         // input of a layer
  attended,      // sublayer output after self-attention, and again after cross-attention
  gate,          // factor of other vectors, such as the hidden units of the feed-forward network
  bias,          // numbers [B, ..] that a bias of the scores is made of, such as gates per key
  context_gate,  // factor [B, T, heads Dv] of the contexts of the attention before, in its layout
  feed_forward,  // output of the feed-forward network
  top,           // output of the last layer, before a final norm
  logits,  // outputs for the answer: [B, .., V] for the last V tokens of the target vocabulary, or
           // the predicted number
  step,  // log probabilities [B, V] of one token, if gradients of each token flow only through its
         // own step
};

// Arguments of Pass::normalised(): (x - mean) / sqrt(variance + epsilon) * weight + bias.
struct NormCall {
  at::Tensor x, weight, bias;  // [.., depth], [depth], [depth]; an undefined bias is 0
  double epsilon;
  bool centred = true;  // if false, the mean counts as 0, also in the variance

  // weight / sqrt(variance + epsilon) of other vectors [.., depth].
  at::Tensor factors(const at::Tensor& vectors) const;
};

// Settings of one forward computation. Modules and networks pass it to everything they call:
//   Tensor Layer::forward(const Tensor& x, const Pass& pass) {
//     return dropout(linear_->forward(x, pass), 0.1, pass);
//   }
// With {}, nothing is dropped, drawn or watched, every position is here, and products have the
// precision of the weights. A pass is cheap to copy. Objects that it points to must outlive it.
struct Pass {
  // Source of random numbers for dropout, hard attention and the like; none at inference. Each
  // replica of a model has its own generator, so draws do not depend on thread timing.
  c10::optional<at::Generator> generator = {};
  // If true, linear maps multiply float32 inputs and weights as bfloat16, forward and backward, and
  // sum in float32. Results have 8 bits of precision; weights and gradient sums keep 24
  // (Micikevicius et al. 2018, 3.1). Twice as fast if multiplies_bfloat16() (nn/linear.h).
  bool bfloat16 = false;
  // Processes that compute the objective of a batch together; null: only this process. Each process
  // computes some positions of every sequence, attends over all positions and returns its part of
  // the objective. All need the same batches, the same weights and generators in the same state.
  // The caller must sum the gradients of all processes. Requires the CPU and a network with an
  // empty NetworkConfig::not_shared_reason().
  Communicator* world = nullptr;
  Site site = {};
  Watch* watch = nullptr;
  const SharedSequence* sequence = nullptr;  // sequence of the layers; null: every position is here
  Recurrence* recurrence = nullptr;          // recurrence of the current steps; null: none
  // Collects additional objectives of layers: scalars that are already weighted. Each counts once
  // per target token. Null outside of training.
  std::vector<at::Tensor>* penalties = nullptr;

  // Copies of this pass with another site, watch, sequence or recurrence, or without a watch.
  Pass at_site(const Site& other) const;
  Pass watched_by(Watch& other) const;
  Pass unseen() const;
  Pass over(const SharedSequence& other) const;
  Pass in(Recurrence& other) const;

  // attention() of ops/attention.h as the watch returns it; distributed_attention() over a sequence
  // that processes share. `output` [depth, heads Dv]: the linear map of the concatenated head
  // contexts, used by watches; may be undefined.
  AttentionResult attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const AttentionSpec& spec, const at::Tensor& output = {}) const;

  // The context [B, heads, Tq, Dv] of weights [B, heads, Tq, Tk] that the caller has computed, for
  // value [B, key heads, Tk, Dv]. A watch sees weights_call(); `spec` as there.
  at::Tensor apply_weights(const at::Tensor& weights, const at::Tensor& value,
                           const AttentionSpec& spec, const at::Tensor& output = {}) const;

  // attention_weights() of such a call, as the watch returns them.
  at::Tensor weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                     const AttentionSpec& spec) const;

  // Normalisation of the last axis (Ba et al. 2016; if not centred, Zhang & Sennrich 2019), as the
  // watch returns it.
  at::Tensor normalised(const NormCall& call) const;

  // f(x) for an elementwise function f, as the watch returns it.
  at::Tensor activated(const at::Tensor& x, at::Tensor (*f)(const at::Tensor& x)) const;

  // The vectors [B, T, depth] as the watch returns them; unchanged without a watch.
  at::Tensor watched(WatchedVectors which, const at::Tensor& vectors) const;

  // A random seed other than 0; 0, for no draws, without a generator.
  uint64_t draw_seed() const;

 private:
  Pass unwatched() const;  // this pass without its watch
};

// One call of Pass::attention() and its result.
struct AttentionCall {
  at::Tensor query, key, value;
  AttentionSpec spec;
  at::Tensor output;
  AttentionResult result = {};  // undefined until computed
  at::Tensor factors = {};      // a trace keeps WatchedVectors::context_gate here

  int64_t heads() const { return query.dim() == 4 ? query.size(1) : 1; }
};

// A call with the given weights [.., Tq, Tk] for value [.., Tk, Dv]: the weights are its queries,
// and rows of the identity its keys, so that their products are the weights. `spec` gives scope,
// alignment, dropout and path; the rest of it is replaced.
AttentionCall weights_call(const at::Tensor& weights, const at::Tensor& value, AttentionSpec spec);

// Observes the calls that the networks of a pass report, and may replace their results. `rest` is
// the caller's pass without this watch; use its results to leave a call unchanged.
class Watch {
 public:
  virtual ~Watch() = default;

  virtual AttentionResult attention(const AttentionCall& call, const Pass& rest);
  virtual at::Tensor weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                             const AttentionSpec& spec, const Pass& rest);
  virtual at::Tensor normalised(const NormCall& call, const Pass& rest);
  virtual at::Tensor activated(const at::Tensor& x, at::Tensor (*f)(const at::Tensor& x),
                               const Pass& rest);
  virtual at::Tensor vectors(WatchedVectors which, const at::Tensor& vectors, const Pass& rest);

 private:
  friend struct Pass;
  Watch* outer_ = nullptr;  // the previous watch of the pass
};

}  // namespace attend
