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
#include "attend/nn/positions.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/step_attention.h"
#include "attend/nn/token_loss.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

class PackedRecurrent;

// The encoder-decoder of Bahdanau et al. 2015 with any mechanism of the table. A bidirectional
// recurrent encoder annotates every source token. At each step, a query made from decoder vectors
// attends to the annotations; its context enters the recurrence and the readout, a maxout layer.
// Without the encoder (Xu et al. 2015), the annotations are the embedded tokens or frames with
// positions.
//
// If the query contains `state`, the recurrence runs before attention (Luong et al. 2015). The
// context then enters the readout, and also the next step if the query contains `context` or with
// input_feeding. With score "none" the context is constant: the last state of each direction, or
// the mean of annotations that are not from a recurrence. A plain model has no context
// (Seq2SeqConfig).
//
// Optionally, Transformer layers read the annotations, the readout reads earlier decoder states
// (Paulus et al. 2017), and tokens are copied from the source (See et al. 2017).
class Seq2Seq : public PairNetwork {
 public:
  // Error as Seq2SeqConfig::check and SourceInput, and if config.wants_joint_vocabulary() but
  // source and target have different tokens.
  Seq2Seq(const Seq2SeqConfig& config, const SourceShape& source, int64_t target_tokens);

  // Teacher-forced logits [B, T, V] for batch.target; log probabilities if tokens are copied.
  at::Tensor logits(const Batch& batch, const Pass& pass);

  // As logits(), for sources without padding and without dropout. `states` receives the hidden
  // states of the encoder's forward direction, for differentiation; see
  // BidirectionalEncoder::unrolled. Error without an encoder.
  at::Tensor logits_by_states(const Batch& batch, std::vector<at::Tensor>& states);

  // objective() is the cross-entropy. With a generator and hard attention, its gradient also
  // estimates the contribution of the draws (Xu et al. 2015, eq. 11-12). The reward of a draw is
  // the log-likelihood of the tokens from its step on. With coverage_weight, the gradient also
  // includes the coverage loss. The value is only the cross-entropy.
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override;
  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override;
  at::Tensor encodings(const at::Tensor& source, const at::Tensor& lengths,
                       const Pass& pass) override;
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override;
  bool pack(WeightType weights) override;
  // A recurrence skips padding, but self-attention and means sum over all positions.
  bool pads_exactly() const override { return packed_ != nullptr && encoder_ && !self_; }
  bool attends() const override { return attention_ != nullptr; }
  bool copies() const override { return !gate_.is_empty(); }
  // Error also if an embedding would be on two devices.
  void place(const Devices& devices) override;

 private:
  struct Memory {
    AttentionMemory attention;  // unused with score "none"
    at::Tensor summary;         // [B, hidden]; undefined in a plain model
    at::Tensor extra;           // [B, embedding]; undefined unless the query wants it
  };
  struct Decoder {
    std::vector<at::Tensor> recurrent;
    at::Tensor context;                 // before the step; undefined unless used
    std::vector<at::Tensor> attention;  // as AttentionStep::carried
    PastSteps past;                     // undefined unless the readout reads it
  };
  // Inputs of the readout, [B, .., D] each.
  struct Readout {
    at::Tensor state, embedded;
    at::Tensor context;  // undefined in a plain model
    at::Tensor past;     // undefined without intra_decoder
  };
  struct Teaching {
    Readout readout;
    at::Tensor weights;  // [B, T, S]; undefined unless needed
    HardDraw draws;      // [B, T] each; undefined if nothing was drawn
    // One entry per token, with weights if needed; empty unless a watch differentiates.
    std::vector<std::pair<Readout, at::Tensor>> steps;
  };

  struct State;

  bool has_part(QueryVector part) const;
  void make_decoder(const Seq2SeqConfig& config);
  void make_readout(const Seq2SeqConfig& config, int64_t target_tokens);

  // Annotations without a recurrent encoder: the embedded source with positions.
  at::Tensor placed(const at::Tensor& embedded) const;
  const at::Tensor& target_weight() const;  // weight of the target embedding, [V, embedding]
  TokenOutput output() const;

  // The source as a memory, and the first decoder state.
  std::pair<Memory, Decoder> encode(const at::Tensor& source, const at::Tensor& lengths,
                                    const Pass& pass);
  // As encode(), from the vectors below model.self_layers.
  std::pair<Memory, Decoder> remember(const at::Tensor& embedded, const at::Tensor& below,
                                      const at::Tensor& lengths, const Pass& pass);
  Teaching teach(const Batch& batch, const Memory& memory, Decoder decoder, const Pass& pass);

  // One step of the recurrence and of attention; updates `decoder`. Returns the context of this
  // step.
  AttentionStep advance(const at::Tensor& embedded, const Memory& memory, Decoder& decoder,
                        const Pass& pass);
  at::Tensor query(const Decoder& decoder, const at::Tensor& state, const at::Tensor& embedded,
                   const Memory& memory) const;
  // Input of the output matrix.
  at::Tensor vectors(const Readout& readout, const Pass& pass);
  // Logits, or log probabilities if tokens are copied.
  at::Tensor logits(const Readout& readout, const at::Tensor& weights, const at::Tensor& source,
                    const Pass& pass);
  // Training terms in addition to the cross-entropy; only their gradient is meaningful.
  at::Tensor signal(const Teaching& teaching, const at::Tensor& logits,
                    const at::Tensor& target) const;

  double dropout_;
  double entropy_weight_;
  double coverage_weight_;
  std::vector<QueryVector> query_parts_;
  int64_t extra_depth_;           // depth of query part extra
  bool state_first_ = false;      // the query contains the state after the step
  bool carries_context_ = false;  // the query or the recurrence reads the previous context
  GridSize grid_;                 // patch grid of an image source
  Devices devices_;
  std::shared_ptr<SourceInput> source_embedding_;
  torch::nn::Embedding target_embedding_{nullptr};  // null if it is the source's
  std::shared_ptr<BidirectionalEncoder> encoder_;   // null with encoder "none"
  std::shared_ptr<TransformerStack> self_;          // null without model.self_layers
  Linear initial_{nullptr};                         // null in a plain model
  std::shared_ptr<StepAttention> attention_;        // null with score "none"
  std::shared_ptr<MovingAverage> reward_;           // baseline of hard attention; otherwise null
  std::shared_ptr<RecurrentCell> decoder_;
  std::shared_ptr<IntraDecoderAttention> past_;  // null without intra_decoder
  Linear maxout_{nullptr};                       // null in a plain model
  Linear output_{nullptr};                       // null if an embedding is the output matrix
  at::Tensor output_bias_;                       // used with an embedding as matrix
  Linear gate_{nullptr};  // between copying and generating; null without copying
  std::shared_ptr<const PackedRecurrent> packed_;  // null until pack(), or if it is not supported
};

// Cross-entropy of logits [B, T, V] against target [B, T] in nats, summed over the tokens that are
// not padding. `smoothing` is the probability spread over the tokens from Vocabulary::first_target
// on (Szegedy et al. 2016).
at::Tensor sequence_loss(const at::Tensor& logits, const at::Tensor& target, double smoothing);

}  // namespace attend
