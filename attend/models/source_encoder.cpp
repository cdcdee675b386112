#include "attend/models/source_encoder.h"

#include <cmath>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed_parts.h"
#include "attend/decode/packed_output.h"
#include "attend/models/frame_neighbours.h"
#include "attend/nn/positions.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

}  // namespace

SourceEncoderConfig::SourceEncoderConfig() {
  self.bias = MechanismSettings::automatic_bias;
  positions = Positions::none;
}

Settings SourceEncoderConfig::own_settings() {
  return {
      {"model.shared_layers", &shared_layers,
       "for each layer the number of the layer with its parameters, such as 1, 1, 1, 4, 4, 4; "
       "empty: each layer has its own"},
      {"model.embedding_depth", &embedding_depth,
       "depth of the vectors of tokens and positions, which a linear map brings to model.depth; "
       "0: model.depth, without a map",
       0, 65536},
      {"model.convolution", &convolution,
       "width of a convolution over neighbouring tokens, added to the output of the first "
       "layer; odd; 0: none",
       0, 255},
      {"model.convolution_activation", &convolution_activation, "activation of this convolution"},
      {"model.normalise_input", &normalise_input,
       "whether the input of the layers, with its positions, is normalised"},
      {"model.token_dropout", &token_dropout,
       "share of hidden tokens in training, for which vectors of other tokens are scaled; "
       "hidden tokens then have the vector 0; 0: neither",
       0, 0.95},
      {"model.contact_head", &contact_head,
       "whether the model has a logistic regression from all attention maps to contacts of "
       "tokens, which import reads and training does not change"}};
}

std::vector<int64_t> SourceEncoderConfig::layer_owners() const {
  std::vector<int64_t> owners;
  if (trimmed(shared_layers).empty()) return owners;
  for (const std::string& text : trimmed_parts(shared_layers, ',')) {
    const std::optional<int64_t> number = parse_number<int64_t>(text);
    if (number.value_or(0) < 1)
      fail("model.shared_layers has {}; write numbers of layers, from 1, such as 1, 1, 3, 3",
           in_quotes(text));
    owners.push_back(*number - 1);
  }
  return owners;
}

ContactHead::ContactHead(int64_t layers, int64_t heads)
    : weight(register_parameter("weight", torch::zeros({1, layers * heads}), false)),
      bias(register_parameter("bias", torch::zeros({1}), false)) {}

Setting SourceEncoderConfig::length_setting() {
  return {"model.maximum_source_length", &maximum_source_length,
          "maximum number of tokens of a source; the rest is cut", 1, 1 << 20};
}

Setting SourceEncoderConfig::sides_setting() {
  return {"model.side_vectors", &side_vectors,
          "if data.pairs reads pairs of texts: whether their tokens get a vector per text"};
}

Settings SourceEncoderConfig::weight_settings() {
  Settings all = LayersConfig::weight_settings();
  append(all, own_settings());
  if (positions == Positions::learned) all.push_back(length_setting());
  return all;
}

Settings SourceEncoderConfig::settings() {
  Settings all = LayersConfig::settings();
  append(all, image.settings());
  append(
      all,
      {{"model.recurrent_layers", &recurrent_layers,
        "number of bidirectional recurrent layers below self-attention; 0: none", 0, 64},
       {"model.cell", &cell, "recurrent cell"},
       {"model.layers", &layers, "number of layers of self-attention; 0: none", 0, 256},
       {"model.inducing_points", &inducing_points,
        "number of learned vectors per layer that summarise the source (Set Transformer); 0: none",
        0, 4096},
       length_setting()});
  append(all, own_settings());
  return all;
}

std::string SourceEncoderConfig::no_weights_reason() const {
  if (layers == 0) return "model.layers = 0";
  return attends(layers - 1) ? "model.normaliser = linear" : "model.layer = " + layer;
}

std::string SourceEncoderConfig::unused_mechanism_reason() const {
  return layers == 0 ? "model.layers = 0" : LayersConfig::unused_mechanism_reason();
}

std::string SourceEncoderConfig::not_shared_reason() const {
  if (convolution > 0)
    return fmt::format("model.convolution is {}, which reads tokens of other processes",
                       convolution);
  return LayersConfig::not_shared_reason();
}

void SourceEncoderConfig::check() const {
  if (layers > 0) {
    LayersConfig::check();
    check_both_ways();
  }
  if (layers == 0 && !layer_owners().empty())
    fail("model.shared_layers is {}, and model.layers 0; take layers, or an empty list",
         shared_layers);
  if (layers == 0 && inducing_points > 0)
    fail("model.inducing_points is {}, and model.layers 0; take layers, or 0 points",
         inducing_points);
  if (convolution > 0 && (convolution % 2 == 0 || layers == 0))
    fail("model.convolution is {}; take an odd width and layers, or 0", convolution);
  if (contact_head && (layers == 0 || inducing_points > 0 || !attends_everywhere()))
    fail(
        "model.contact_head is true, and not every layer has attention between tokens; take false");
  if (recurrent_layers > 0 && depth % 2 != 0)
    fail("model.depth is {}, and each direction of a recurrent layer needs half; make it even",
         depth);
  if (recurrent_layers > 0 && embedding_depth > 0)
    fail("model.embedding_depth is {}, and recurrent layers read vectors of model.depth; take 0",
         embedding_depth);
}

SourceEncoder::SourceEncoder(const SourceShape& shape, const SourceEncoderConfig& config,
                             int64_t class_tokens)
    : shape_(shape),
      sinusoids_(sinusoid_order(config.positions)),
      dropout_(config.layers > 0 || config.recurrent_layers > 0 ? config.dropout : 0),
      token_dropout_(config.token_dropout),
      input_(register_module(
          "input", std::make_shared<SourceInput>(shape, config.input_depth(), config.image))) {
  config.check();
  const auto* image = shape.as<ImageForm>();
  if (config.positions == Positions::learned)
    positions_ = register_module(
        "positions", std::make_shared<LearnedPositions>(
                         image ? image->rows * image->columns : config.maximum_source_length,
                         config.input_depth()));
  // Small, like learned positions.
  if (shape.as<PairForm>() != nullptr && config.side_vectors)
    sides_ = register_parameter("sides", torch::randn({2, config.input_depth()}) * 0.02);
  if (config.recurrent_layers > 0)
    recurrent_ = register_module(
        "recurrent", std::make_shared<BidirectionalEncoder>(
                         config.cell, config.depth, config.depth,
                         RecurrentLayers{config.recurrent_layers, config.dropout, false}));
  const auto* bound = shape.as<NeighbourForm>();
  if (class_tokens > 0 && bound != nullptr)
    fail("model.pooling is class, and its token has no bonds; take mean, sum or multi_head");
  // Small, like learned positions.
  if (class_tokens > 0)
    class_token_ = register_parameter("class_token",
                                      torch::randn({1, class_tokens, config.input_depth()}) * 0.02);
  if (config.normalise_input)
    norm_ = register_module(
        "norm", torch::nn::LayerNorm(
                    torch::nn::LayerNormOptions({config.input_depth()}).eps(config.epsilon)));
  if (config.embedding_depth > 0)
    projection_ = register_module("projection", Linear(config.embedding_depth, config.depth));
  if (config.layers > 0) {
    TransformerStackConfig stack = config.stack(config.layers, /*causal=*/false);
    stack.owners = config.layer_owners();
    stack.inducing_points = config.inducing_points;
    stack.convolution = config.convolution;
    stack.convolution_activation = config.convolution_activation;
    stack.neighbour_kinds = bound == nullptr ? 0 : bound->kinds;
    layers_ = register_module("layers", std::make_shared<TransformerStack>(stack));
  }
  if (config.contact_head)
    contacts_ =
        register_module("contacts", std::make_shared<ContactHead>(config.layers, config.heads));
}

Tensor SourceEncoder::positioned(const Tensor& vectors) const {
  if (positions_) return positions_->forward(vectors);
  if (!sinusoids_) return vectors;
  const int64_t depth = vectors.size(2);
  if (const auto* image = shape_.as<ImageForm>())
    return vectors +
           sinusoidal_grid({image->rows, image->columns}, depth, vectors.options(), *sinusoids_);
  const Tensor positions =
      sinusoidal_positions(vectors.size(1), depth, 0, vectors.options(), *sinusoids_);
  // Token vectors have length 1, and sinusoids would dominate them (Vaswani et al. 2017, 3.4).
  return (shape_.is_frames() ? vectors : vectors * std::sqrt(static_cast<double>(depth))) +
         positions;
}

Tensor SourceEncoder::with_sides(const Tensor& vectors, const Tensor& source) const {
  if (!sides_.defined()) return vectors;
  return vectors + at::embedding(sides_, source.div(shape_.tokens(), "floor"));
}

StackSource SourceEncoder::forward(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  Tensor factors;
  if (token_dropout_ > 0 && !shape_.is_frames())
    factors = token_factors(token_ids(shape_, source), lengths, token_dropout_, weight().options());
  StackSource result{with_sides(positioned(input_->forward(source, pass, factors)), source),
                     lengths};
  if (recurrent_)
    result.vectors =
        recurrent_->forward(attend::dropout(result.vectors, dropout_, pass), lengths.cpu(), pass);
  if (class_token_.defined()) {
    result.vectors = at::cat({class_token_.expand({source.size(0), -1, -1}), result.vectors}, 1);
    result.lengths = lengths + class_token_.size(1);
  }
  if (norm_)
    result.vectors = pass.normalised(
        {result.vectors, norm_->weight, norm_->bias, norm_->options.eps(), /*centred=*/true});
  result.vectors = attend::dropout(result.vectors, dropout_, pass);
  if (projection_) result.vectors = projection_->forward(result.vectors, pass);
  if (!layers_) return result;
  const bool is_plain = !pass.generator && pass.sequence == nullptr && !is_training();
  if (packed_ && is_plain && may_step_packed(pass)) {
    result.vectors = packed_->encode(result.vectors, result.lengths);
    return result;
  }
  std::optional<Neighbours> neighbours;
  if (const auto* bound = shape_.as<NeighbourForm>())
    neighbours = frame_neighbours(source, lengths, bound->neighbours);
  result.vectors = layers_->forward(result.vectors, result.lengths, {}, pass,
                                    neighbours ? &*neighbours : nullptr);
  return result;
}

bool SourceEncoder::pack(WeightType weights) {
  packed_ = nullptr;
  if (layers_ && shape_.as<NeighbourForm>() == nullptr && PackedStack::encodes(*layers_))
    packed_ = std::make_shared<const PackedStack>(*layers_, weights);
  return packed_ != nullptr;
}

Tensor token_factors(const Tensor& source, const Tensor& lengths, double share,
                     const at::TensorOptions& like) {
  const Tensor hidden = (source == Vocabulary::unknown).logical_or(source == mask_token).to(like);
  const Tensor all = lengths.to(like).unsqueeze(1);
  // A source of only hidden tokens has vectors of 0, whatever their factor.
  const Tensor shown = (all - hidden.sum(1, true)).clamp_min(1);
  return ((1 - hidden) * (1 - share) * all / shown).unsqueeze(2);
}

Tensor drop_words(const Tensor& source, double share, const Pass& pass, int64_t pair_tokens) {
  if (!pass.generator || share == 0 || source.is_floating_point()) return source;
  const Tensor dropped = at::rand(source.sizes(), pass.generator) < share;
  if (pair_tokens == 0) return source.masked_fill(dropped, Vocabulary::unknown);
  return at::where(dropped, source - source.remainder(pair_tokens) + Vocabulary::unknown, source);
}

Tensor rolled_out(Tensor weights, const AttentionTrace& trace) {
  const auto& layers = trace.attentions();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const Tensor map = layer->weights().mean(1);
    weights = 0.5 * (weights + at::matmul(weights.unsqueeze(1), map).squeeze(1));
  }
  return weights;
}

}  // namespace attend
