#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/pair_network.h"
#include "attend/nn/attention_network.h"
#include "attend/nn/recurrent.h"

namespace attend {

struct Seq2SeqConfig {
  std::string cell = "gru";
  std::string score = "additive";  // a row of the score table, or "none": one fixed context
  int64_t embedding = 128;
  int64_t hidden = 256;  // depth of the decoder state and of the annotations
  int64_t attention_depth = 256;
  int64_t encoder_layers = 1;
  double dropout = 0.1;
  int64_t maximum_source_length = 512;

  Settings settings();  // keys model.*
};

// The encoder-decoder of Bahdanau et al. 2015: a bidirectional recurrent encoder annotates every
// source symbol; at each step the decoder's state before queries an attention network over the
// annotations, and the context it returns enters the recurrence and the readout, a maxout layer.
// With score "none" the context is the same at every step: the last state of each direction.
class Seq2Seq : public PairNetwork {
 public:
  Seq2Seq(const Seq2SeqConfig& config, int64_t source_symbols, int64_t target_symbols);

  // Teacher-forced logits [B, T, V] for batch.target.
  at::Tensor logits(const Batch& batch, const Noise& noise);

  at::Tensor objective(const Batch& batch, const Noise& noise, double smoothing) override;
  StepState start(const at::Tensor& source, const at::Tensor& lengths) override;
  StepResult step(const at::Tensor& tokens, const StepState& state, bool with_weights) override;
  bool attends() const override { return attention_ != nullptr; }

 private:
  struct Memory {
    AttentionMemory attention;  // unused with score "none"
    at::Tensor summary;         // [B, hidden]
  };

  // The source as a memory, and the first decoder state.
  std::pair<Memory, std::vector<at::Tensor>> encode(const at::Tensor& source,
                                                    const at::Tensor& lengths, const Noise& noise);
  AttentionResult context(const at::Tensor& query, const Memory& memory);
  at::Tensor readout(const at::Tensor& state, const at::Tensor& embedded, const at::Tensor& context,
                     const Noise& noise);

  double dropout_;
  torch::nn::Embedding source_embedding_{nullptr};
  torch::nn::Embedding target_embedding_{nullptr};
  std::shared_ptr<BidirectionalEncoder> encoder_;
  torch::nn::Linear initial_{nullptr};
  std::shared_ptr<AttentionNetwork> attention_;  // null with score "none"
  std::shared_ptr<RecurrentCell> decoder_;
  torch::nn::Linear maxout_{nullptr};
  torch::nn::Linear output_{nullptr};
};

// Cross-entropy of logits [B, T, V] against target [B, T], summed over the symbols that are not
// padding, in nats. `smoothing` spreads that much probability over all symbols (Szegedy et al.
// 2016).
at::Tensor sequence_loss(const at::Tensor& logits, const at::Tensor& target, double smoothing);

}  // namespace attend
