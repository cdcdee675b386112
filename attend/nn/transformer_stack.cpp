#include "attend/nn/transformer_stack.h"

#include <algorithm>
#include <utility>

#include "attend/base/error.h"
#include "attend/nn/shared_sequence.h"

namespace attend {
namespace {

using at::Tensor;

// [B, T] bool for the positions of this process, false at padding; undefined without padding.
Tensor present_positions(const Tensor& x, const Tensor& lengths, const Pass& pass) {
  if (!lengths.defined()) return {};
  std::vector<Tensor> positions;
  for (const Run& run : positions_here(pass, 0, x.size(1)))
    positions.push_back(at::arange(run.first, run.first + run.count, lengths.options()));
  return at::cat(positions).unsqueeze(0).lt(lengths.unsqueeze(1)).to(x.device());
}

std::shared_ptr<Norm> new_norm(const TransformerStackConfig& config) {
  return std::make_shared<Norm>(config.depth, config.norm, config.epsilon);
}

Tensor normalised(const Tensor& x, const Norm* norm, const Pass& pass) {
  return norm == nullptr ? x : norm->forward(x, pass);
}

// `index`: the layer, from 0.
MultiHeadConfig heads_of(const TransformerStackConfig& config, const std::vector<HeadGroup>& groups,
                         int64_t index) {
  return {.depth = config.depth,
          .groups = groups,
          .head_depth = config.head_depth,
          .dropout = config.attention_dropout,
          .layer = index};
}

void check_owners(const TransformerStackConfig& config) {
  if (config.owners.empty()) return;
  if (std::ssize(config.owners) != config.layers)
    fail(
        "[transformer] got the owners of the parameters of {} layers, and there are {} (as "
        "model.shared_layers and model.layers); name one per layer",
        config.owners.size(), config.layers);
  const auto turns = static_cast<int64_t>(std::max<size_t>(1, config.self_in_turn.size()) *
                                          std::max<size_t>(1, config.recurrences.size()));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const int64_t owner = config.owner(layer);
    if (owner < 0 || owner > layer || config.owner(owner) != owner)
      fail(
          "[transformer] layer {} takes the parameters of layer {}; take its own, or an earlier "
          "layer with parameters of its own",
          layer + 1, owner + 1);
    if ((layer - owner) % turns != 0)
      fail(
          "[transformer] layers {} and {} share parameters, and layers differ in turn; let layers "
          "of "
          "equal kind share",
          owner + 1, layer + 1);
  }
}

std::string part_name(int64_t layer, const char* part) {
  return fmt::format("layer{}_{}", layer, part);
}

}  // namespace

void StackCaches::reorder(const Tensor& rows, bool same_source) {
  for (MultiHeadState& each : self) each.reorder(rows, /*same_keys=*/false);
  for (RecurrenceLayerState& each : recurrences) each.reorder(rows);
  for (MultiHeadState& each : cross) each.reorder(rows, same_source);
}

TransformerStack::TransformerStack(const TransformerStackConfig& config) : config_(config) {
  if (config.layers < 1) fail("[transformer] got {} layers; take 1 or more", config.layers);
  if (config.gated && config.experts > 0)
    fail("[transformer] got {} experts, which do not support gates; take one or the other",
         config.experts);
  make_distances(config);
  if (config.convolution > 0)
    convolution_ =
        register_module("convolution", std::make_shared<NearConvolution>(NearConvolutionConfig{
                                           .depth = config.depth,
                                           .width = config.convolution,
                                           .activation = config.convolution_activation,
                                           .epsilon = config.epsilon,
                                           .dropout = config.dropout}));
  layers_.reserve(static_cast<size_t>(config.layers));
  check_owners(config);
  for (int64_t i = 0; i < config.layers; ++i)
    layers_.push_back(config.owner(i) == i ? make_layer(config, i)
                                           : layers_[static_cast<size_t>(config.owner(i))]);
  if (config.normalise_first) final_norm_ = register_module("norm", new_norm(config));
  if (config.fixed_biases)
    for (auto& item : named_parameters())
      if (item.key().ends_with(".bias")) item.value().requires_grad_(false);
  if (config.depth_block <= 0) return;
  if (!config.normalise_first || config.convolution > 0)
    fail(
        "[transformer] attention over depth needs norms before the sublayers and no convolution; "
        "take normalise_first = true and convolution = 0");
  const int64_t sublayers = config.layers * (config.cross.empty() ? 2 : 3);
  depth_attention_ = register_module(
      "depth", std::make_shared<DepthAttention>(config.depth, sublayers, config.depth_block));
}

void TransformerStack::make_distances(const TransformerStackConfig& config) {
  if (config.distances == DistanceSource::own) return;
  int64_t rows = 0;
  for (const HeadGroup& group : config.self)
    for (const BiasChoice& bias : parse_biases(group.choices.bias))
      if (bias.row->compares() && rows == 0) rows = table_axes(bias)[0];
  if (rows == 0)
    fail(
        "[transformer] the layers share vectors of distances, and no bias reads them; take a bias "
        "such as content_to_position:K, or distances own");
  distances_ = register_module("distances", std::make_shared<DistanceVectors>(DistanceVectorsConfig{
                                                .rows = rows,
                                                .depth = config.depth,
                                                .normalised = config.normalise_distances,
                                                .epsilon = config.epsilon,
                                                .dropout = config.dropout}));
}

// The part of a layer that reads the sequence itself.
void TransformerStack::make_self(const TransformerStackConfig& config, int64_t index,
                                 Layer& layer) {
  const std::vector<HeadGroup>& self = config.self_of(index);
  const RecurrenceRow* row = config.recurrence(index);
  if (row == nullptr) {
    MultiHeadConfig heads = heads_of(config, self, index);
    heads.neighbour_kinds = config.neighbour_kinds;
    heads.distances = distances_;
    heads.maps_distances = config.distances == DistanceSource::mapped;
    if (config.shared_bias)
      for (const Layer& earlier : layers_)
        if (earlier.self != nullptr && heads.bias_owner == nullptr)
          heads.bias_owner = earlier.self.get();
    layer.self =
        register_module(part_name(index, "self"), std::make_shared<MultiHeadAttention>(heads));
    if (config.inducing_points > 0) make_points(config, index, self, layer);
    return;
  }
  if (config.inducing_points > 0 || config.neighbour_kinds > 0)
    fail(
        "[transformer] layer {} is {}, which reads a sequence in order, without inducing points or "
        "neighbours; take attention",
        index + 1, row->name);
  int64_t heads = 0;
  for (const HeadGroup& group : self) heads += group.heads;
  layer.recurrence = register_module(
      part_name(index, "recurrence"),
      std::make_shared<RecurrenceLayer>(RecurrenceLayerConfig{.row = row,
                                                              .depth = config.depth,
                                                              .heads = heads,
                                                              .both_ways = config.both_ways,
                                                              .epsilon = config.epsilon}));
}

void TransformerStack::make_points(const TransformerStackConfig& config, int64_t index,
                                   const std::vector<HeadGroup>& self, Layer& layer) {
  if (layer.self->is_positional())
    fail(
        "[transformer] inducing points lack positions, which the heads depend on; take scope "
        "all, no bias of positions (as model.bias = none) and no rotation");
  if (config.norm != NormKind::layer || config.head_depth > 0)
    fail(
        "[transformer] inducing points use norm layer and heads that divide the depth; got norm {} "
        "and head depth {}; take layer and 0",
        name_of(config.norm), config.head_depth);
  if (config.neighbour_kinds > 0)
    fail(
        "[transformer] inducing points read all positions, and neighbours read only each other; "
        "take no points (as model.inducing_points = 0)");
  layer.points = register_module(part_name(index, "points"),
                                 std::make_shared<LearnedQueries>(LearnedQueriesConfig{
                                     .queries = config.inducing_points,
                                     .depth = config.depth,
                                     .heads = {.heads = self[0].heads},
                                     .feed_forward = config.feed_forward,
                                     .activation = config.activation,
                                     .dropout = config.dropout,
                                     .attention_dropout = config.attention_dropout}));
}

TransformerStack::Layer TransformerStack::make_layer(const TransformerStackConfig& config,
                                                     int64_t index) {
  const auto name = [&](const char* part) { return part_name(index, part); };
  Layer layer;
  make_self(config, index, layer);
  if (index > 0 || config.first_norm)
    layer.self_norm = register_module(name("self_norm"), new_norm(config));
  if (!config.cross.empty()) {
    MultiHeadConfig heads = heads_of(config, config.cross, index);
    heads.source_depth = config.source_depth;
    layer.cross = register_module(name("cross"), std::make_shared<MultiHeadAttention>(heads));
    layer.cross_norm = register_module(name("cross_norm"), new_norm(config));
  }
  if (config.experts > 0)
    layer.experts = register_module(
        name("experts"),
        std::make_shared<MixtureOfExperts>(MixtureConfig{.depth = config.depth,
                                                         .hidden = config.feed_forward,
                                                         .experts = config.experts,
                                                         .chosen = config.chosen_experts,
                                                         .dropout = config.dropout,
                                                         .activation = config.activation}));
  else
    layer.feed_forward = register_module(
        name("feed_forward"),
        std::make_shared<FeedForward>(config.depth, config.feed_forward, config.dropout,
                                      config.activation, config.gated));
  layer.feed_forward_norm = register_module(name("feed_forward_norm"), new_norm(config));
  return layer;
}

template <class Sublayer>
Tensor TransformerStack::added(const Tensor& x, const Norm* norm, const Pass& pass,
                               Sublayer sublayer) {
  const Tensor made = sublayer(config_.normalise_first ? normalised(x, norm, pass) : x);
  Tensor sum = x + attend::dropout(made, config_.dropout, pass);
  return config_.normalise_first ? sum : normalised(sum, norm, pass);
}

template <class Sublayer>
void TransformerStack::added(DepthAttention::Outputs& outputs, const Tensor& x, const Norm* norm,
                             const Pass& pass, Sublayer sublayer) {
  outputs.add(attend::dropout(sublayer(normalised(x, norm, pass)), config_.dropout, pass));
}

Tensor TransformerStack::fed_forward(Layer& layer, const Tensor& x, const Tensor& present,
                                     const Pass& pass) {
  return pass.watched(WatchedVectors::feed_forward, layer.experts
                                                        ? layer.experts->forward(x, pass, present)
                                                        : layer.feed_forward->forward(x, pass));
}

// Watches do not see the vectors after the attention: these are not sums with its output.
template <class Self, class Cross>
Tensor TransformerStack::through_depth(const Tensor& x, const Tensor& present, const Pass& pass,
                                       Self read_self, Cross read_cross) {
  const Pass first = pass.at_site({pass.site.part, 1, false});
  DepthAttention::Outputs outputs(*depth_attention_, first.watched(WatchedVectors::layer, x));
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const Pass self = pass.at_site({pass.site.part, static_cast<int64_t>(i) + 1, false});
    const Tensor read = outputs.read(self);
    added(outputs, i == 0 ? read : self.watched(WatchedVectors::layer, read), layer.self_norm.get(),
          self, [&](const Tensor& in) { return read_self(i, in, self); });
    if (layer.cross) {
      const Pass cross = pass.at_site({pass.site.part, self.site.layer, true});
      added(outputs, outputs.read(cross), layer.cross_norm.get(), cross,
            [&](const Tensor& in) { return read_cross(i, in, cross); });
    }
    added(outputs, outputs.read(self), layer.feed_forward_norm.get(), self,
          [&](const Tensor& in) { return fed_forward(layer, in, present, self); });
  }
  const Tensor top = pass.watched(WatchedVectors::top, outputs.read(pass));
  return final_norm_->forward(top, pass, config_.output_scale);
}

template <class Self, class Cross>
Tensor TransformerStack::through(Tensor x, const Tensor& present, const Pass& pass, Self read_self,
                                 Cross read_cross) {
  if (depth_attention_) return through_depth(x, present, pass, read_self, read_cross);
  const Tensor input = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    Site site{pass.site.part, static_cast<int64_t>(i) + 1, false};
    const Pass self = pass.at_site(site);
    x = added(self.watched(WatchedVectors::layer, x), layer.self_norm.get(), self,
              [&](const Tensor& in) { return read_self(i, in, self); });
    x = self.watched(WatchedVectors::attended, x);
    if (layer.cross) {
      site.reads_source = true;
      const Pass cross = pass.at_site(site);
      x = added(x, layer.cross_norm.get(), cross,
                [&](const Tensor& in) { return read_cross(i, in, cross); });
      x = cross.watched(WatchedVectors::attended, x);
    }
    x = added(x, layer.feed_forward_norm.get(), self,
              [&](const Tensor& in) { return fed_forward(layer, in, present, self); });
    if (i == 0 && convolution_) x = convolution_->forward(input, x, present, self);
  }
  x = pass.watched(WatchedVectors::top, x);
  return final_norm_ ? final_norm_->forward(x, pass, config_.output_scale) : x;
}

Tensor TransformerStack::read_self(Layer& layer, const Tensor& x, const Padding& padding,
                                   const Neighbours* neighbours, const Pass& pass) {
  const Tensor& lengths = padding.lengths;
  if (layer.recurrence) return layer.recurrence->forward(x, padding.present, pass);
  if (!layer.points) return layer.self->forward(x, x, lengths, pass, neighbours);
  const Pass unseen = pass.unseen();
  return layer.self->forward(x, layer.points->forward(x, lengths, unseen), {}, unseen);
}

Tensor TransformerStack::forward(const Tensor& x, const Tensor& lengths, const StackSource& source,
                                 const Pass& pass, const Neighbours* neighbours) {
  const bool asks_presence =
      config_.experts > 0 || !config_.recurrences.empty() || convolution_ != nullptr;
  const Padding padding{lengths, asks_presence ? present_positions(x, lengths, pass) : Tensor()};
  return through(
      x, padding.present, pass,
      [&](size_t i, const Tensor& in, const Pass& here) {
        return read_self(layers_[i], in, padding, neighbours, here);
      },
      [&](size_t i, const Tensor& in, const Pass& here) {
        return layers_[i].cross->forward(in, source.vectors, source.lengths, here);
      });
}

StackCaches TransformerStack::start(const StackSource& source, const Pass& pass) {
  if (config_.inducing_points > 0)
    fail("[transformer] inducing points read whole sequences, not steps; call forward");
  if (convolution_)
    fail("[transformer] a convolution reads later positions, which steps lack; call forward");
  StackCaches caches;
  for (Layer& layer : layers_) {
    caches.self.emplace_back();
    caches.recurrences.emplace_back();
    if (layer.cross)
      caches.cross.push_back(layer.cross->prepare(source.vectors, source.lengths, pass));
  }
  return caches;
}

Tensor TransformerStack::step(const Tensor& x, StackCaches& caches, const Pass& pass) {
  caches.positions += x.size(1);
  return through(
      x, {}, pass,
      [&](size_t i, const Tensor& in, const Pass& here) {
        return layers_[i].recurrence ? layers_[i].recurrence->step(in, caches.recurrences[i], here)
                                     : layers_[i].self->step(in, caches.self[i], here);
      },
      [&](size_t i, const Tensor& in, const Pass& here) {
        return layers_[i].cross->read(in, caches.cross[i], here);
      });
}

}  // namespace attend
