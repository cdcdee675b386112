#pragma once

#include <torch/nn/modules/embedding.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attend/models/pair_network.h"
#include "attend/models/seq2seq_config.h"
#include "attend/models/source_input.h"
#include "attend/nn/hard_attention.h"
#include "attend/nn/intra_attention.h"
#include "attend/nn/linear.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/step_attention.h"
#include "attend/nn/token_loss.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

class PackedRecurrent;

// The encoder-decoder of Bahdanau et al. 2015 with any mechanism of the table: a bidirectional
// recurrent encoder annotates every source token; at each step a query made of the decoder's
// vectors reads the annotations, and its context enters the recurrence and the readout, a maxout
// layer. Without the encoder (Xu et al. 2015) a source is annotated by its tokens or frames and
// their positions. With `state` in the query the recurrence runs first and attention after it
// (Luong et al. 2015): the context then enters the readout, and the next step where `context` is a
// part too, or with input_feeding. With score "none" the context is the same at every step: the
// last state of each direction, or the mean of annotations that no recurrence made; a plain model
// has no context at all (Seq2SeqConfig). Transformer
// layers may read the annotations of either kind, the readout the decoder's earlier states (Paulus
// et al. 2017), and a token be copied from the source (See et al. 2017).
class Seq2Seq : public PairNetwork {
 public:
  // Error as Seq2SeqConfig::check and SourceInput, and where config.wants_joint_vocabulary() and
  // source and target have different tokens.
  Seq2Seq(const Seq2SeqConfig& config, const SourceShape& source, int64_t target_tokens);

  // Teacher-forced logits [B, T, V] for batch.target; log probabilities where tokens are copied.
  at::Tensor logits(const Batch& batch, const Pass& pass);

  // The same for sources without padding, without dropout; `states` takes the hidden states of the
  // encoder's forward direction to differentiate by, as BidirectionalEncoder::unrolled. Error
  // without an encoder.
  at::Tensor logits_by_states(const Batch& batch, std::vector<at::Tensor>& states);

  // The cross-entropy. With hard attention and a generator its gradient also estimates what the
  // draws contribute (Xu et al. 2015, eq. 11-12: a draw's reward is the log-likelihood of the
  // tokens from its step on), and with coverage_weight the cost of coverage; the value is the
  // cross-entropy alone.
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool pack(WeightType weights) override;
  // A recurrence reads what there is of each source; self-attention and means sum over all.
  bool pads_exactly(int64_t /*length*/) const override {
    return packed_ != nullptr && encoder_ && !self_;
  }
  bool attends() const override { return attention_ != nullptr; }
  bool copies() const override { return !gate_.is_empty(); }
  // Error also where an embedding would be on two devices.
  void place(const Devices& devices) override;

 private:
  struct Memory {
    AttentionMemory attention;  // unused with score "none"
    at::Tensor summary;         // [B, hidden]; undefined in a plain model
    at::Tensor extra;           // [B, embedding]; undefined unless the query wants it
  };
  struct Decoder {
    std::vector<at::Tensor> recurrent;
    at::Tensor context;                 // before the step; undefined unless something wants it
    std::vector<at::Tensor> attention;  // as AttentionStep::carried
    PastSteps past;                     // undefined unless the readout reads it
  };
  // What tokens are read off, [B, .., D] each.
  struct Readout {
    at::Tensor state, embedded;
    at::Tensor context;  // undefined in a plain model
    at::Tensor past;     // undefined without intra_decoder
  };
  struct Teaching {
    Readout readout;
    at::Tensor weights;  // [B, T, S]; undefined unless something wants them
    HardDraw draws;      // [B, T] each; undefined unless something was drawn
    // One entry per token, weights where there are some; empty unless a watch differentiates.
    std::vector<std::pair<Readout, at::Tensor>> steps;
  };

  struct State;

  bool has_part(QueryVector part) const;
  void make_decoder(const Seq2SeqConfig& config);
  void make_readout(const Seq2SeqConfig& config, int64_t target_tokens);

  // The source, embedded, as what attention reads, where nothing recurrent annotates it.
  at::Tensor placed(const at::Tensor& embedded) const;
  const at::Tensor& target_weight() const;  // of the target's embedding, [V, embedding]
  TokenOutput output() const;

  // The source as a memory, and the first decoder state.
  std::pair<Memory, Decoder> encode(const at::Tensor& source, const at::Tensor& lengths,
                                    const Pass& pass);
  // The same from the vectors below model.self_layers.
  std::pair<Memory, Decoder> remember(const at::Tensor& embedded, const at::Tensor& below,
                                      const at::Tensor& lengths, const Pass& pass);
  Teaching teach(const Batch& batch, const Memory& memory, Decoder decoder, const Pass& pass);

  // One step of the recurrence and of attention; `decoder` becomes the state after it. The context
  // is that of the step.
  AttentionStep advance(const at::Tensor& embedded, const Memory& memory, Decoder& decoder,
                        const Pass& pass);
  at::Tensor query(const Decoder& decoder, const at::Tensor& state, const at::Tensor& embedded,
                   const Memory& memory) const;
  // What the output's matrix reads.
  at::Tensor vectors(const Readout& readout, const Pass& pass);
  // Logits, or log probabilities where tokens are copied.
  at::Tensor logits(const Readout& readout, const at::Tensor& weights, const at::Tensor& source,
                    const Pass& pass);
  // What training adds to the cross-entropy, without a meaning as a number.
  at::Tensor signal(const Teaching& teaching, const at::Tensor& logits,
                    const at::Tensor& target) const;

  double dropout_;
  double entropy_weight_;
  double coverage_weight_;
  std::vector<QueryVector> query_parts_;
  int64_t extra_depth_;           // of the part extra
  bool state_first_ = false;      // the query holds the state after the step
  bool carries_context_ = false;  // what the query or the recurrence read of the step before
  GridSize grid_;                 // of the source, where it is an image
  Devices devices_;
  std::shared_ptr<SourceInput> source_embedding_;
  torch::nn::Embedding target_embedding_{nullptr};  // null where it is the source's
  std::shared_ptr<BidirectionalEncoder> encoder_;   // null with encoder "none"
  std::shared_ptr<TransformerStack> self_;          // null without model.self_layers
  Linear initial_{nullptr};                         // null in a plain model
  std::shared_ptr<StepAttention> attention_;        // null with score "none"
  std::shared_ptr<MovingAverage> reward_;           // of hard attention, else null
  std::shared_ptr<RecurrentCell> decoder_;
  std::shared_ptr<IntraDecoderAttention> past_;  // null without intra_decoder
  Linear maxout_{nullptr};                       // null in a plain model
  Linear output_{nullptr};                       // null where an embedding is its matrix
  at::Tensor output_bias_;                       // then
  Linear gate_{nullptr};  // between copies and the vocabulary; null without copies
  std::shared_ptr<const PackedRecurrent> packed_;  // null until pack(), and where there is no such
};

// Cross-entropy of logits [B, T, V] against target [B, T], summed over the tokens that are not
// padding, in nats. `smoothing` spreads that much probability over the tokens from
// Vocabulary::first_target on (Szegedy et al. 2016).
at::Tensor sequence_loss(const at::Tensor& logits, const at::Tensor& target, double smoothing);

}  // namespace attend
