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
  none,  // outside of the others
  encoder,
  decoder,  // reads the answer so far
  layers,   // of a language model, whose text is the source and then the answer
  pooling,  // of a classifier: one vector of many
};

// Where in a network a computation is.
struct Site {
  NetworkPart part = NetworkPart::none;
  int64_t layer = 0;          // of that part, from 1; 0 outside of layers
  bool reads_source = false;  // a decoder reads its source

  bool operator==(const Site&) const = default;
};

// Vectors, one per token, that a watch may see or replace.
enum class WatchedVectors {
  input,         // of the tokens or frames, before positions are added
  layer,         // what a layer reads
  attended,      // what it has where it has read its sequence, and again where it has read a source
  gate,          // what multiplies the hidden units of its feed-forward network
  feed_forward,  // what its feed-forward network adds
  top,           // what the last layer gives, before a norm behind the layers
  logits,        // [B, .., V] of the V last tokens of the targets' vocabulary, or the number: what
                 // the answer is read off
  step,          // log probabilities [B, V] of a token, where gradients of each token go back from
                 // its own step alone
};

// What Pass::normalised() takes: (x - mean) / sqrt(variance + epsilon) * weight + bias.
struct NormCall {
  at::Tensor x, weight, bias;  // [.., depth], [depth], [depth]
  double epsilon;
};

// What is true during one forward computation. Modules and networks pass it on to whatever they
// call:
//   Tensor Layer::forward(const Tensor& x, const Pass& pass) {
//     return dropout(linear_->forward(x, pass), 0.1, pass);
//   }
// {}: nothing is dropped or drawn, nobody watches, every position is here, products have the
// weights' precision. A pass is cheap to copy; what it points to must outlive it.
struct Pass {
  // What dropout, hard attention and the like draw from; none at inference. Each replica of a model
  // has its own, so that what it draws does not depend on how threads interleave.
  c10::optional<at::Generator> generator = {};
  // Linear maps multiply float32 inputs and weights as bfloat16, forward and backward, and add the
  // products up in float32: results have 8 bits, weights and their sums of gradients all 24
  // (Micikevicius et al. 2018, 3.1). Twice as fast where multiplies_bfloat16() (nn/linear.h).
  bool bfloat16 = false;
  // The processes that compute the objective of a batch together: each computes some positions of
  // every sequence, attends over all of them and gives its part of the objective. All have the same
  // batches, the same weights and generators in the same state; the gradients of all are to be
  // summed. Null: this one alone. It takes networks whose type's NetworkConfig::why_not_shared() is
  // empty, on the CPU.
  Communicator* world = nullptr;
  Site site = {};
  Watch* watch = nullptr;
  const SharedSequence* sequence = nullptr;  // that layers are over; null: every position is here
  Recurrence* recurrence = nullptr;          // whose steps these are; null: of none
  // Takes what layers want to be lowered besides the objective, scalars that are weighed already:
  // each counts once per target token. Null: nothing is trained.
  std::vector<at::Tensor>* penalties = nullptr;

  // The same pass elsewhere in the network, watched, over a sequence, in the steps of a recurrence.
  Pass at_site(const Site& other) const;
  Pass watched_by(Watch& other) const;
  Pass over(const SharedSequence& other) const;
  Pass in(Recurrence& other) const;

  // attention() of ops/attention.h, as the watch has it, over a sequence that processes share by
  // distributed_attention(). `output` [depth, heads Dv]: the linear map that the heads' contexts go
  // through, one after another, for who watches; undefined: there is none.
  AttentionResult attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const AttentionSpec& spec, const at::Tensor& output = {}) const;

  // attention_weights() of such a call, as the watch has them.
  at::Tensor weights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& lse,
                     const AttentionSpec& spec) const;

  // Layer normalisation (Ba et al. 2016) of the last axis, as the watch has it.
  at::Tensor normalised(const NormCall& call) const;

  // f(x), f a function of each number by itself, as the watch has it.
  at::Tensor activated(const at::Tensor& x, at::Tensor (*f)(const at::Tensor& x)) const;

  // The vectors [B, T, depth] as the watch returns them; unchanged without one.
  at::Tensor watched(WatchedVectors which, const at::Tensor& vectors) const;

  // A seed other than 0 for what draws by a seed; 0, nothing is drawn, without a generator.
  uint64_t draw_seed() const;

 private:
  Pass unwatched() const;  // without the watch that there is
};

// One call of Pass::attention() and what it gave.
struct AttentionCall {
  at::Tensor query, key, value;
  AttentionSpec spec;
  at::Tensor output;
  AttentionResult result = {};  // undefined until it is there

  int64_t heads() const { return query.dim() == 4 ? query.size(1) : 1; }
};

// Sees what the networks of a pass report, and may replace the results. `rest` is the caller's pass
// without this watch: its results are the ones to use where a watch does not interfere.
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
  Watch* outer_ = nullptr;  // who watched before
};

}  // namespace attend
