#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attend/models/pair_network.h"
#include "attend/models/seq2seq_config.h"
#include "attend/nn/attention_network.h"
#include "attend/nn/hard_attention.h"
#include "attend/nn/recurrent.h"

namespace attend {

// The encoder-decoder of Bahdanau et al. 2015 with any mechanism of the table: a bidirectional
// recurrent encoder annotates every source symbol; at each step a query made of what the decoder
// has reads the annotations, and the context it gets enters the recurrence and the readout, a
// maxout layer. With `state` in the query the recurrence runs first and attention after it (Luong
// et al. 2015): the context then enters the readout, and the next step where `context` is a part
// too. With score "none" the context is the same at every step: the last state of each direction.
class Seq2Seq : public PairNetwork {
 public:
  // Error as Seq2SeqConfig::check.
  Seq2Seq(const Seq2SeqConfig& config, int64_t source_symbols, int64_t target_symbols);

  // Teacher-forced logits [B, T, V] for batch.target.
  at::Tensor logits(const Batch& batch, const Noise& noise);

  // The same for sources without padding, without dropout; `states` takes the hidden states of the
  // encoder's forward direction to differentiate by, as BidirectionalEncoder::unrolled.
  at::Tensor logits_by_states(const Batch& batch, std::vector<at::Tensor>& states);

  // The cross-entropy. With hard attention and noise its gradient also estimates what the draws
  // contribute (Xu et al. 2015, eq. 11-12: a draw's reward is the log-likelihood of the symbols
  // from its step on); the value is the cross-entropy alone.
  at::Tensor objective(const Batch& batch, const Noise& noise, double smoothing) override;
  StepState start(const at::Tensor& source, const at::Tensor& lengths) override;
  StepResult step(const at::Tensor& tokens, StepState& state, bool with_weights) override;
  bool attends() const override { return attention_ != nullptr; }

 private:
  struct Memory {
    AttentionMemory attention;  // unused with score "none"
    at::Tensor summary;         // [B, hidden]
    at::Tensor extra;           // [B, embedding]; undefined unless the query wants it
  };
  struct Decoder {
    std::vector<at::Tensor> recurrent;
    at::Tensor context;                 // before the step; undefined unless the query wants it
    std::vector<at::Tensor> attention;  // as AttentionStep::carried
  };
  struct Teaching {
    at::Tensor logits;  // [B, T, V]
    HardDraw draws;     // [B, T] each; undefined unless something was drawn
  };

  bool has_part(const char* name) const;

  // The source as a memory, and the first decoder state.
  std::pair<Memory, Decoder> encode(const at::Tensor& source, const at::Tensor& lengths,
                                    const Noise& noise);
  std::pair<Memory, Decoder> remember(const at::Tensor& embedded, const at::Tensor& annotations,
                                      const at::Tensor& lengths);
  Teaching teach(const Batch& batch, const Memory& memory, Decoder decoder, const Noise& noise);

  // One step of the recurrence and of attention; `decoder` becomes the state after it. The context
  // is that of the step.
  AttentionStep advance(const at::Tensor& embedded, const Memory& memory, Decoder& decoder,
                        const Noise& noise);
  at::Tensor query(const Decoder& decoder, const at::Tensor& state, const at::Tensor& embedded,
                   const Memory& memory) const;
  at::Tensor readout(const at::Tensor& state, const at::Tensor& embedded, const at::Tensor& context,
                     const Noise& noise);

  double dropout_;
  double entropy_weight_;
  std::vector<std::string> query_parts_;
  bool state_first_ = false;  // the query holds the state after the step
  torch::nn::Embedding source_embedding_{nullptr};
  torch::nn::Embedding target_embedding_{nullptr};
  std::shared_ptr<BidirectionalEncoder> encoder_;
  torch::nn::Linear initial_{nullptr};
  std::shared_ptr<AttentionNetwork> attention_;  // null with score "none"
  std::shared_ptr<MovingAverage> reward_;        // of hard attention, else null
  std::shared_ptr<RecurrentCell> decoder_;
  torch::nn::Linear maxout_{nullptr};
  torch::nn::Linear output_{nullptr};
};

// Cross-entropy of logits [B, T, V] against target [B, T], summed over the symbols that are not
// padding, in nats. `smoothing` spreads that much probability over all symbols (Szegedy et al.
// 2016).
at::Tensor sequence_loss(const at::Tensor& logits, const at::Tensor& target, double smoothing);

}  // namespace attend
