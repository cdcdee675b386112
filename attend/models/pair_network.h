#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "attend/data/batches.h"
#include "attend/decode/decoding_state.h"
#include "attend/decode/weight_type.h"
#include "attend/models/target_shape.h"
#include "attend/nn/devices.h"
#include "attend/nn/pass.h"

namespace attend {

class ContactHead;

// Relation of tokens to the top vectors that predict the answer, for tracing. By default it is
// unknown.
struct TopVectors {
  int64_t before_source = 0;  // number of layer vectors before the first source token
  // [T, vectors of a layer]: shares of the top layer's vectors in the prediction of each answer
  // token. Undefined if the attention of a decoder or a pooling after the layers determines them.
  at::Tensor shares = {};
  bool layers_add = true;  // layers have residual connections
};

// A network from one sequence of tokens to another. A label is a target of one token. A number is
// also a target of one token. Its id is ignored: Batch::numbers holds the standardised value.
// Each "log probability" below is then the predicted number, the only value at its position. A set
// of labels is one prediction, too, with the ids in Batch::labels; labels-inl.h has its form. A
// span is a target of two tokens, the positions of its first and last token in the source. The
// "tokens" that have log probabilities are then positions, V = S. The Pass holds the settings of a
// computation, and explanations observe what the network reports to it. docs/architecture.md, "A
// contract for one network", lists the required and optional parts.
class PairNetwork : public torch::nn::Module {
 public:
  // The training objective to minimise: a scalar in nats, summed over the tokens of batch.target
  // including EOS. `smoothing` is the probability spread over all possible next tokens. These are
  // the tokens from Vocabulary::first_target on, or the labels (Szegedy et al. 2016). Without a
  // generator and smoothing it is the negative log-likelihood of the targets. A network that learns
  // from a random part of the tokens scales the sum to all tokens. For number targets it is the sum
  // of the squared errors.
  virtual at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) = 0;

  // Log probabilities [B, T, V] of the tokens at each position of batch.target, given the earlier
  // tokens (teacher forcing); differentiable. A network that fills in hidden tokens returns them
  // for each source position. The default computes them step by step. The types of this library
  // return float64: the gradient of a nearly certain answer contains 1 - p, which has few digits in
  // float32. Explanations require that the network reports to the pass the source vectors
  // (WatchedVectors::input) and each Pass::attention() with its Site.
  virtual at::Tensor log_probabilities(const Batch& batch, const Pass& pass);

  // Relation of tokens to layer vectors in log_probabilities() of one pair. Unknown by default;
  // methods that follow the layers then report that they are unsupported.
  virtual TopVectors top_vectors(int64_t source_length, int64_t target_length) const;
  // As above, for a batch of one pair; the target may decide which vectors are read.
  virtual TopVectors top_vectors_of(const Batch& batch) const {
    return top_vectors(batch.source.size(1), batch.target.size(1));
  }

  // The source tokens, followed by all further tokens that the answer depends on, for explanations.
  // By default the source itself.
  virtual std::vector<int64_t> with_surroundings(std::vector<int64_t> source) const {
    return source;
  }

  // The decoding state before the first token; sources as in a Batch.
  virtual std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                               const Pass& pass) = 0;

  // Whether the sources of one call of start() must have equal lengths. A network that continues
  // its source cannot pad it.
  virtual bool wants_equal_lengths() const { return false; }

  // Whether padding leaves the log probabilities of steps bit-identical. Results then equal
  // unbatched decoding. Not guaranteed for weights, with gradients or with a watch.
  virtual bool pads_exactly() const { return false; }

  // The vectors [B, S, depth] of the encoded sources. Error if the network has no encoder.
  virtual at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                               const Pass& pass);

  // The vector [depth] of a text with token vectors [S, depth], S at least 1. By default their
  // mean.
  virtual at::Tensor text_vector(const at::Tensor& vectors) const { return vectors.mean(0); }

  // The regression of contacts (models/source_encoder.h); null if there is none.
  virtual const ContactHead* contact_head() const { return nullptr; }

  // Moves the network to one device, or its parts to several devices. Inputs stay on the CPU; log
  // probabilities, objectives and weights are on the device that computes them. Error for several
  // devices if the type cannot be split.
  virtual void place(const Devices& devices);

  // Packs the current weights as `weights` for steps without LibTorch. Returns false if the type or
  // its settings do not support this. start() then returns states for packed steps, unless
  // gradients are recorded or there is a watch. objective() may use packed weights if, in addition,
  // nothing is drawn. Call it again when weights change or move, but not while other threads
  // decode.
  virtual bool pack(WeightType /*weights*/) { return false; }

  // Whether objective() uses what pack() stores.
  virtual bool packs_objective() const { return false; }

  // Whether steps return attention weights.
  virtual bool attends() const = 0;

  // Whether the unknown token in an answer represents a source token that the network copies. Such
  // a network attends.
  virtual bool copies() const { return false; }

  // Maximum number of answer tokens with positions.
  virtual int64_t maximum_answer_length() const { return std::numeric_limits<int64_t>::max(); }

 protected:
  at::Tensor to_device(const at::Tensor& x) const { return x.to(device_); }

 private:
  at::Device device_ = at::kCPU;  // device of a network that uses one device
};

// Decoder input: target [B, T] shifted right by one, after the start token.
at::Tensor shift_right(const at::Tensor& target);

}  // namespace attend
