#include "attend/models/transformer.h"

#include <cmath>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/decode/packed_decoder.h"
#include "attend/decode/stack_steps.h"
#include "attend/nn/shared_sequence.h"
#include "attend/ops/kernel_tensors.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

constexpr Site in_decoder{NetworkPart::decoder, 0, false};

// Number of learned target positions: maximum answer length plus the start token.
int64_t longest_target(const TransformerConfig& config) {
  return config.maximum_target_length > 0 ? config.maximum_target_length + 1
                                          : 3 * config.maximum_source_length + 11;
}

SourceEncoderConfig encoder_config(const TransformerConfig& config) {
  SourceEncoderConfig result;
  static_cast<LayersConfig&>(result) = config;
  result.layers = config.encoder_layers;
  result.image = config.image;
  result.maximum_source_length = config.maximum_source_length;
  return result;
}

void check_tied(const TransformerConfig& config, const SourceShape& source, int64_t target_tokens) {
  if (!shares_inputs(config.tied)) return;
  if (source.is_frames())
    fail("model.tied is {}, and images or sounds have no tokens to share; take target",
         name_of(config.tied));
  if (source.tokens() != target_tokens)
    fail(
        "model.tied is {}, with {} source and {} target tokens; one embedding for both takes "
        "data.joint_vocabulary = true",
        name_of(config.tied), source.tokens(), target_tokens);
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, const SourceShape& source,
                         int64_t target_tokens)
    : dropout_(config.dropout) {
  config.check();
  check_tied(config, source, target_tokens);
  const bool shared = shares_inputs(config.tied);
  const int64_t longest = longest_target(config);
  if (source.is_frames()) {
    frames_ = register_module(
        "source_encoder",
        std::make_shared<SourceEncoder>(source, encoder_config(config), /*class_tokens=*/0));
  } else {
    const bool one = shared && !config.separate_positions;
    source_embedding_ = register_module(
        "source_embedding", std::make_shared<PositionedEmbedding>(
                                source.tokens(), config.depth,
                                config.embedding(one ? longest : config.maximum_source_length)));
    encoder_ = register_module("encoder", std::make_shared<TransformerStack>(config.stack(
                                              config.encoder_layers, /*causal=*/false)));
  }
  const EmbeddingForm form = config.embedding(longest);
  target_embedding_ = source_embedding_;
  if (!shared)
    target_embedding_ = register_module("target_embedding", std::make_shared<PositionedEmbedding>(
                                                                target_tokens, config.depth, form));
  else if (config.separate_positions)
    target_embedding_ = register_module(
        "target_embedding", std::make_shared<PositionedEmbedding>(*source_embedding_, form));
  TransformerStackConfig decoder =
      config.stack(config.decoder_layers, /*causal=*/true, &config.source);
  if (config.scale_output) decoder.output_scale = 1 / std::sqrt(static_cast<double>(config.depth));
  decoder_ = register_module("decoder", std::make_shared<TransformerStack>(decoder));
  if (!shares_output(config.tied))
    output_ = register_module("output", torch::nn::Linear(config.depth, target_tokens));
  else if (config.output_bias)
    output_bias_ = register_parameter("output_bias", at::zeros(target_tokens));
  trains_bias_ = !config.fixed_output_bias;
}

void Transformer::place(const Devices& devices) {
  const at::Device rest = devices.decoder;
  if (devices.attention != rest)
    fail(
        "the layers of a Transformer hold their attention; place it with the decoder: attention={}",
        rest.str());
  if (devices.encoder != rest && source_embedding_ &&
      source_embedding_->weight().is_same(target_embedding_->weight()))
    fail("encoder and decoder share an embedding by model.tied; place both on {}", rest.str());
  PairNetwork::place({rest, rest, rest});
  encoder_device_ = devices.encoder;
  if (frames_) frames_->to(encoder_device_);
  if (source_embedding_) source_embedding_->to(encoder_device_);
  if (encoder_) encoder_->to(encoder_device_);
}

TokenOutput Transformer::output() const {
  const Tensor weight = output_ ? output_->weight : target_embedding_->weight();
  const Tensor bias = output_ ? output_->bias : output_bias_;
  return {weight, trains_bias_ || !bias.defined() ? bias : bias.detach()};
}

StackSource Transformer::encode(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const Tensor tokens = source.to(encoder_device_);
  const SharedSequence shared(pass, tokens.size(1));
  const Pass here = pass.at_site({NetworkPart::encoder}).over(shared);
  if (frames_) {
    const StackSource read = frames_->forward(tokens, lengths, here);
    return {to_device(read.vectors), read.lengths};
  }
  const Tensor embedded = source_embedding_->forward(shared.own(tokens), 0, dropout_, here);
  return {to_device(encoder_->forward(embedded, lengths, {}, here)), lengths};
}

Tensor Transformer::decode(const Batch& batch, const SharedSequence& target, const Pass& pass) {
  const StackSource source = encode(batch.source, batch.source_lengths, pass);
  const Pass here = pass.at_site(in_decoder).over(target);
  const Tensor tokens = to_device(target.own(shift_right(batch.target)));
  const Tensor embedded = target_embedding_->forward(tokens, 0, dropout_, here);
  // Positions do not attend to later ones, so padding at the end needs no lengths.
  return decoder_->forward(embedded, {}, source, here);
}

Tensor Transformer::logits(const Batch& batch, const Pass& pass) {
  return pass.watched(
      WatchedVectors::logits,
      output().logits(decode(batch, SharedSequence(pass, batch.target.size(1)), pass)));
}

Tensor Transformer::log_probabilities(const Batch& batch, const Pass& pass) {
  return logits(batch, pass).log_softmax(-1, at::kDouble);
}

Tensor Transformer::objective(const Batch& batch, const Pass& pass, double smoothing) {
  const SharedSequence shared(pass, batch.target.size(1), batch.source.size(1));
  return token_loss(decode(batch, shared, pass).flatten(0, 1), output(),
                    to_device(shared.own(batch.target)).flatten(), pass, smoothing,
                    Vocabulary::padding, Vocabulary::first_target);
}

Tensor Transformer::encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return encode(source, lengths, pass).vectors;
}

struct Transformer::State : DecodingState {
  State(Transformer& its_network, std::unique_ptr<StackSteps> its_layers)
      : network(its_network), layers(std::move(its_layers)) {}

  StepResult step(const Tensor& tokens, bool with_weights, const Pass& pass) override {
    const Pass here = pass.at_site(in_decoder);
    return layers->step(next_vectors(tokens, here), with_weights, here);
  }

  NextTokens next(const Tensor& tokens, const NextQuery& query) override {
    return layers->next(next_vectors(tokens, {}), query);
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    layers->reorder(rows, same_sources);
  }

  // Input of the layers at the next step.
  virtual Tensor next_vectors(const Tensor& tokens, const Pass& pass) {
    return network.target_embedding_
        ->forward(network.to_device(tokens).unsqueeze(1), layers->positions(), 0, pass)
        .squeeze(1);
  }

  Transformer& network;
  std::unique_ptr<StackSteps> layers;
};

// In packed steps, each hypothesis has its own position.
struct Transformer::PackedState : State {
  PackedState(Transformer& its_network, std::unique_ptr<StackSteps> its_layers, int64_t count)
      : State(its_network, std::move(its_layers)), positions(static_cast<size_t>(count)) {}

  void reorder(const Tensor& rows, bool same_sources) override {
    State::reorder(rows, same_sources);
    const Tensor plain = contiguous_numbers(rows);
    std::vector<int64_t> moved;
    moved.reserve(static_cast<size_t>(plain.numel()));
    for (int64_t r = 0; r < plain.numel(); ++r)
      moved.push_back(positions[static_cast<size_t>(pointer_of<const int64_t>(plain)[r])]);
    positions = std::move(moved);
  }

  bool appends() const override { return true; }

  void append(DecodingState& other) override {
    auto& more = static_cast<PackedState&>(other);
    layers->append(*more.layers);
    positions.insert(positions.end(), more.positions.begin(), more.positions.end());
    more.positions.clear();
  }

  Tensor next_vectors(const Tensor& tokens, const Pass& /*pass*/) override {
    Tensor rows = network.target_embedding_->next(tokens, positions);
    for (int64_t& position : positions) ++position;
    return rows;
  }

  std::vector<int64_t> positions;  // [N]
};

std::unique_ptr<DecodingState> Transformer::start(const Tensor& source, const Tensor& lengths,
                                                  const Pass& pass) {
  if (packed_decoder_ == nullptr || !may_step_packed(pass))
    return std::make_unique<State>(
        *this,
        stack_steps(*decoder_, output(), encode(source, lengths, pass), pass.at_site(in_decoder)));
  StackSource read;
  if (packed_encoder_ != nullptr)
    read = {packed_encoder_->encode(source_embedding_->forward(source, 0, 0, pass), lengths),
            lengths};
  else
    read = encode(source, lengths, pass);
  return std::make_unique<PackedState>(*this, packed_decoder_->start(read), source.size(0));
}

// Packed layers compute each row by itself, over the unpadded length of its source.
bool Transformer::pads_exactly() const {
  return packed_decoder_ != nullptr && packed_encoder_ != nullptr;
}

bool Transformer::pack(WeightType weights) {
  packed_decoder_ = PackedDecoder::pack(*decoder_, output(), weights);
  packed_encoder_ = encoder_ && PackedStack::encodes(*encoder_)
                        ? std::make_shared<const PackedStack>(*encoder_, weights)
                        : nullptr;
  return packed_decoder_ != nullptr;
}

}  // namespace attend
