#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "attend/data/batches.h"
#include "attend/nn/devices.h"
#include "attend/nn/pass.h"
#include "attend/steps/decoding_state.h"
#include "attend/steps/weight_type.h"

namespace attend {

// The count of target tokens where targets are numbers, not texts.
constexpr int64_t number_targets = 0;

// The vectors that an answer is read off, for tracing. At first the type does not tell.
struct TopVectors {
  int64_t before_source = 0;  // vectors of a layer before that of the source's first token
  // [T, vectors of a layer]: the shares of the top layer's vectors in what each token of the answer
  // is read off. Undefined where an attention behind the layers, of a decoder or a pooling, says.
  at::Tensor shares = {};
  bool layers_add = true;  // to what they read, by residual connections
};

// A network from a sequence of tokens to another; a label is a target of one token, and so is a
// number, whose token says nothing: Batch::numbers has it, standardised, and each "log probability"
// below is the number that the network answers, the only one at its place. What is true
// during a computation is in its Pass, and explanations see what it reports there;
// docs/architecture.md, "A contract for one network", says what must be there and what may.
class PairNetwork : public torch::nn::Module {
 public:
  // What training lowers: a scalar, summed over the tokens of batch.target, EOS included, in nats.
  // `smoothing` spreads that much probability over the tokens that may be next, those from
  // Vocabulary::first_target on, or the labels (Szegedy et al. 2016). Without a generator and
  // smoothing it is the negative log-likelihood of the targets; a network that learns from a random
  // part of their tokens scales that part's to all. Where targets are numbers it is the sum of the
  // squared errors.
  virtual at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) = 0;

  // The log probabilities [B, T, V] of the tokens at each place of batch.target, after those before
  // it (teacher forcing); differentiable. A network that fills in what is hidden gives those at
  // each place of the source. By default they are computed step by step. The types here give
  // float64: the gradient of an answer that is all but certain holds 1 - p, of which float32 keeps
  // few digits. Vectors and attention that the pass is told of here can be explained: the source's
  // vectors (WatchedVectors::input), each Pass::attention() with its Site.
  virtual at::Tensor log_probabilities(const Batch& batch, const Pass& pass);

  // How tokens belong to the vectors of the layers behind log_probabilities() of one pair. By
  // default a type does not tell, and methods that follow its layers say so.
  virtual TopVectors top_vectors(int64_t source_length, int64_t target_length) const;

  // A source's tokens with all those behind them that its answer depends on, for explaining it: the
  // tokens themselves, unless the network knows others around them.
  virtual std::vector<int64_t> with_surroundings(std::vector<int64_t> source) const {
    return source;
  }

  // The state before the first token, for sources as those of a Batch.
  virtual std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                               const Pass& pass) = 0;

  // Whether the sources of a call of start() must be of one length: a network that continues its
  // source does not pad it.
  virtual bool wants_equal_lengths() const { return false; }

  // Whether padding changes no bit of the log probabilities of steps: where it says so of the
  // lengths of all sources of a call of start(), each has those that it has alone. Weights, and
  // what is computed while gradients are recorded or somebody watches, are left out.
  virtual bool pads_exactly(int64_t /*length*/) const { return false; }

  // The vectors [B, S, depth] that the network makes of those sources for its later parts. Error
  // for a network that reads sources in another way.
  virtual at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                               const Pass& pass);

  // The vector [depth] of a text whose tokens have those vectors [S, depth], one or more: by
  // default their mean.
  virtual at::Tensor text_vector(const at::Tensor& vectors) const { return vectors.mean(0); }

  // Moves the network to a device, or its parts to several. Its inputs stay on the CPU; log
  // probabilities, objectives and weights are on the device that computes them. Error on several
  // devices where the type has no parts to spread.
  virtual void place(const Devices& devices);

  // Takes the weights as they are, kept as `weights`, for steps that do without LibTorch; false
  // where the type or its choices have no such steps. start() then makes states for them while no
  // gradients are recorded and nobody watches, and objective() may read what they gave while
  // nothing is drawn either. To be called again when the weights have changed or moved, and not
  // while others step.
  virtual bool pack(WeightType /*weights*/) { return false; }

  // Whether objective() reads what pack() keeps, so that packing serves it too.
  virtual bool packs_objective() const { return false; }

  // Whether steps have weights to show.
  virtual bool attends() const = 0;

  // Whether the unknown token in an answer means one of the source, which the network copies. Such
  // a network attends.
  virtual bool copies() const { return false; }

  // The number of tokens of an answer that have positions.
  virtual int64_t maximum_answer_length() const { return std::numeric_limits<int64_t>::max(); }

 protected:
  at::Tensor to_device(const at::Tensor& x) const { return x.to(device_); }

 private:
  at::Device device_ = at::kCPU;  // of a network that is on one
};

// The target [B, T] of a batch moved one to the right behind the start token: what each step sees.
at::Tensor shift_right(const at::Tensor& target);

}  // namespace attend
