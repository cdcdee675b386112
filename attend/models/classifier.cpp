#include "attend/models/classifier.h"

#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/data/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

// Labels are the target's symbols after the fixed ones.
constexpr int64_t first_label = Vocabulary::unknown + 1;

constexpr int64_t distance_buckets_each_layer = 32;  // Raffel et al. 2020
constexpr int64_t forward_factor = 2;

std::vector<std::string> normaliser_choices() {
  std::vector<std::string> names;
  names.reserve(normaliser_table().size());
  for (const NormaliserRow& row : normaliser_table()) names.emplace_back(row.name);
  return names;
}

// [B, S, 1] in the words' dtype: 1 is a word, 0 padding.
Tensor word_mask(const Tensor& words, const Tensor& lengths) {
  const Tensor position = at::arange(words.size(1), lengths.options()).unsqueeze(0);
  return (position < lengths.unsqueeze(1)).unsqueeze(2).to(words.scalar_type());
}

// Unknown in place of some words, so that its vector is trained (and a word's absence is).
Tensor drop_words(const Tensor& source, double probability, const Noise& noise) {
  if (!noise || probability == 0) return source;
  const Tensor draw = at::rand(source.sizes(), noise, at::TensorOptions().device(source.device()));
  return source.masked_fill(draw < probability, Vocabulary::unknown);
}

}  // namespace

Settings ClassifierConfig::settings() {
  return {
      {"model.pooling",
       &pooling,
       "how a sentence's word vectors become one; fixed: by learned queries",
       {},
       {},
       {"sum", "mean", "fixed_dot", "fixed_mlp"}},
      {"model.normaliser",
       &normaliser,
       "makes weights of the fixed queries' scores",
       {},
       {},
       normaliser_choices()},
      {"model.queries", &queries, "fixed queries, each of which gives a vector", 1, 1024},
      {"model.attention_depth", &attention_depth, "hidden units of fixed_mlp", 1, 65536},
      {"model.self_layers", &self_layers, "self-attention layers before the pooling", 0, 64},
      {"model.self_heads", &self_heads, "heads of each; they divide model.embedding", 1, 1024},
      {"model.embedding", &embedding, "depth of the word vectors", 1, 65536},
      {"model.hidden", &hidden, "units of a layer after the pooling; 0: none", 0, 65536},
      {"model.word_dropout", &word_dropout, "share of words made unknown in training", 0, 0.95},
      {"model.dropout", &dropout, "share of activations dropped in training", 0, 0.95},
      {"model.maximum_source_length", &maximum_source_length,
       "words of a text that are read; the rest is cut", 1, 1 << 20},
  };
}

void ClassifierConfig::check() const {
  if (self_layers > 0 && embedding % self_heads != 0)
    fail("model.self_heads is {}, which does not divide model.embedding, {}; take one that does",
         self_heads, embedding);
}

SelfAttentionLayer::SelfAttentionLayer(int64_t depth, int64_t heads, double dropout)
    : heads_(heads), dropout_(dropout) {
  const auto norm = [&] { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({depth})); };
  distances_ = register_parameter("distances", torch::zeros({heads, distance_buckets_each_layer}));
  attention_norm_ = register_module("attention_norm", norm());
  projections_ = register_module("projections", torch::nn::Linear(depth, 3 * depth));
  merge_ = register_module("merge", torch::nn::Linear(depth, depth));
  forward_norm_ = register_module("forward_norm", norm());
  inner_ = register_module("inner", torch::nn::Linear(depth, forward_factor * depth));
  outer_ = register_module("outer", torch::nn::Linear(forward_factor * depth, depth));
}

SelfAttentionLayer::Parts SelfAttentionLayer::parts(const Tensor& words, const Tensor& lengths) {
  const auto heads = projections_->forward(attention_norm_->forward(words))
                         .view({words.size(0), words.size(1), 3, heads_, -1})
                         .permute({2, 0, 3, 1, 4})
                         .unbind(0);
  return {heads[0],
          heads[1],
          heads[2],
          {.scope = key_lengths(lengths), .bias = buckets({.table = distances_})}};
}

Tensor SelfAttentionLayer::forward(const Tensor& words, const Tensor& lengths, const Noise& noise) {
  const auto [query, key, value, spec] = parts(words, lengths);
  const Tensor context = attention(query, key, value, spec).context.transpose(1, 2).flatten(2);
  const Tensor read = words + attend::dropout(merge_->forward(context), dropout_, noise);
  const Tensor inner = inner_->forward(forward_norm_->forward(read)).relu();
  return read + attend::dropout(outer_->forward(inner), dropout_, noise);
}

Tensor SelfAttentionLayer::weights(const Tensor& words, const Tensor& lengths) {
  const auto [query, key, value, spec] = parts(words, lengths);
  return attention_weights(query, key, attention(query, key, value, spec).lse, spec).mean(1);
}

Classifier::Classifier(const ClassifierConfig& config, int64_t source_symbols,
                       int64_t target_symbols)
    : mean_(config.pooling == "mean"),
      word_dropout_(config.word_dropout),
      dropout_(config.dropout) {
  config.check();
  const int64_t depth = config.embedding;
  embedding_ = register_module("embedding", torch::nn::Embedding(source_symbols, depth));
  torch::nn::init::normal_(embedding_->weight, 0, 1 / std::sqrt(static_cast<double>(depth)));
  for (int64_t i = 0; i < config.self_layers; ++i)
    layers_.push_back(register_module(
        fmt::format("self{}", i),
        std::make_shared<SelfAttentionLayer>(depth, config.self_heads, config.dropout)));
  const bool fixed = config.pooling.starts_with("fixed");
  if (fixed)
    fixed_ =
        register_module("fixed", std::make_shared<FixedAttention>(FixedAttentionConfig{
                                     .score = config.pooling == "fixed_dot" ? "dot" : "additive",
                                     .normaliser = config.normaliser,
                                     .depth = depth,
                                     .queries = config.queries,
                                     .attention_depth = config.attention_depth}));
  int64_t vector = fixed ? config.queries * depth : depth;
  if (config.hidden > 0) {
    hidden_ = register_module("hidden", torch::nn::Linear(vector, config.hidden));
    vector = config.hidden;
  }
  output_ = register_module("output", torch::nn::Linear(vector, target_symbols - first_label));
}

Tensor Classifier::pooled(const Tensor& words, const Tensor& lengths) const {
  if (fixed_) return fixed_->forward(words, words, lengths).context;
  const Tensor sum = (words * word_mask(words, lengths)).sum(1);
  return mean_ ? sum / lengths.unsqueeze(1) : sum;
}

Tensor Classifier::logits(const Tensor& source, const Tensor& lengths, const Noise& noise) {
  Tensor words = embedding_->forward(drop_words(source, word_dropout_, noise));
  for (const auto& layer : layers_) words = layer->forward(words, lengths, noise);
  Tensor vector = attend::dropout(pooled(words, lengths), dropout_, noise);
  if (hidden_) vector = attend::dropout(hidden_->forward(vector).relu(), dropout_, noise);
  return output_->forward(vector);
}

Tensor Classifier::word_weights(const Tensor& source, const Tensor& lengths) {
  Tensor words = embedding_->forward(source);
  std::vector<Tensor> maps;
  maps.reserve(layers_.size());
  for (const auto& layer : layers_) {
    maps.push_back(layer->weights(words, lengths));
    words = layer->forward(words, lengths, {});
  }
  Tensor weights;
  if (fixed_) {
    weights = fixed_->weights(words, fixed_->forward(words, words, lengths).lse, lengths).mean(1);
  } else {
    weights = word_mask(words, lengths).squeeze(2);
    if (mean_) weights = weights / lengths.unsqueeze(1);
  }
  for (auto map = maps.rbegin(); map != maps.rend(); ++map)
    weights = 0.5 * (weights + at::matmul(weights.unsqueeze(1), *map).squeeze(1));
  return weights;
}

Tensor Classifier::objective(const Batch& batch, const Noise& noise, double smoothing) {
  const Tensor labels = batch.target.select(1, 0) - first_label;
  return at::cross_entropy_loss(logits(batch.source, batch.source_lengths, noise), labels, {},
                                at::Reduction::Sum, /*ignore_index=*/-100, smoothing);
}

// The whole network is one step, which needs the ids alone.
StepState Classifier::start(const Tensor& source, const Tensor& lengths) {
  StepState state;
  state.memory = {source, lengths};
  return state;
}

StepResult Classifier::step(const Tensor& tokens, StepState& state, bool with_weights) {
  const Tensor &source = state.memory[0], &lengths = state.memory[1];
  StepResult result;
  result.log_probabilities =
      at::full({tokens.size(0), first_label + output_->options.out_features()},
               -std::numeric_limits<double>::infinity(), output_->weight.options());
  // All hypotheses are as long as each other.
  const bool first = tokens[0].item<int64_t>() == Vocabulary::start;
  if (first) {
    result.log_probabilities.slice(1, first_label)
        .copy_(logits(source, lengths, {}).log_softmax(-1));
  } else {
    result.log_probabilities.select(1, Vocabulary::end).zero_();
  }
  if (!with_weights || !attends()) return result;
  result.weights =
      first ? word_weights(source, lengths) : at::zeros(source.sizes(), output_->weight.options());
  return result;
}

}  // namespace attend
