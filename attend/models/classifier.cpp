#include "attend/models/classifier.h"

#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/models/labels-inl.h"
#include "attend/nn/multi_head_state.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using at::Tensor;

using internal::first_label;

constexpr Site pooling_site{NetworkPart::pooling, 0, false};

// Syntaxes of the supported normalisers: "softmax, temperature:T, ...".
std::string pooling_normalisers() {
  std::vector<std::string_view> all;
  for (const NormaliserRow& row : normaliser_table())
    if (not_pooled_reason(row, Features::any).empty()) all.push_back(row.syntax);
  return fmt::format("{}", fmt::join(all, ", "));
}

// [B, S] in the vectors' dtype: 1 for words, 0 for padding.
Tensor word_mask(const StackSource& words) {
  const Tensor lengths = words.lengths.to(words.vectors.device()).unsqueeze(1);
  return (at::arange(words.vectors.size(1), lengths.options()) < lengths)
      .to(words.vectors.scalar_type());
}

}  // namespace

Settings ClassifierConfig::weight_settings() {
  Settings all = SourceEncoderConfig::weight_settings();
  all.push_back(sides_setting());
  return all;
}

Settings ClassifierConfig::settings() {
  Settings all = {
      {"model.pooling", &pooling,
       "how the vectors of a source become one; fixed: by learned queries; class: by an additional "
       "token; multi_head: by a learned query with model.heads heads; first: by the first token, "
       "which a tokenizer may add"},
      {"model.registers", &registers,
       "number of learned vectors next to the token of pooling class; layers read them", 0, 256},
      {"model.pooling_normaliser", &pooling_normaliser,
       "normaliser of the learned queries' scores: " + pooling_normalisers()},
      {"model.queries", &queries, "number of fixed queries, each with its own vector", 1, 1024},
      {"model.attention_depth", &attention_depth, "hidden units of fixed_mlp", 1, 65536},
      {"model.hidden", &hidden, "number of hidden units after the pooling; 0: no hidden layer", 0,
       65536},
      {"model.hidden_activation", &hidden_activation,
       "activation of the hidden units after the pooling"},
      {"model.hidden_norm", &hidden_norm,
       "whether the hidden units after the pooling are normalised"},
      {"model.word_dropout", &word_dropout, "share of words made unknown in training", 0, 0.95},
      {"model.output_dropout", &output_dropout,
       "share of the pooled vector and of hidden units dropped in training", 0, 0.95},
      sides_setting(),
  };
  append(all, SourceEncoderConfig::settings());
  return all;
}

std::string ClassifierConfig::no_weights_reason() const {
  if (layers > 0 && !attends_everywhere()) return "model.layer = " + layer;
  return layers > 0 && inducing_points == 0 ? "model.normaliser = linear"
                                            : "model.pooling = " + name_of(pooling);
}

void ClassifierConfig::check() const {
  SourceEncoderConfig::check();
  const std::string_view reason =
      not_pooled_reason(Normaliser(pooling_normaliser).row(), Features::any);
  if (!reason.empty())
    fail("model.pooling_normaliser is {}, which {}; take {}", pooling_normaliser, reason,
         pooling_normalisers());
  if (pooling == Pooling::multi_head) {
    if (queries != 1)
      fail("model.queries is {}, and model.pooling multi_head has one; take more heads", queries);
    if (depth % heads != 0)
      fail("model.heads is {}, which does not divide model.depth, {}; take one that does", heads,
           depth);
  }
  if (hidden_norm && hidden == 0)
    fail("model.hidden_norm is true, and model.hidden 0; take units, or false");
  if (registers > 0 && pooling != Pooling::class_token)
    fail("model.registers is {}, and they need model.pooling = class; take 0", registers);
  if ((pooling == Pooling::class_token || pooling == Pooling::first_token) && layers == 0)
    fail(
        "model.pooling is {}, and its token reads the others only in layers; set model.layers to 1 "
        "or more",
        name_of(pooling));
}

Classifier::Classifier(const ClassifierConfig& config, const SourceShape& source,
                       const TargetShape& target)
    : pooling_(config.pooling),
      class_tokens_(config.class_tokens()),
      pair_tokens_(source.as<PairForm>() != nullptr ? source.tokens() : 0),
      hidden_activation_(config.hidden_activation),
      target_(target),
      word_dropout_(config.word_dropout),
      output_dropout_(config.output_dropout) {
  config.check();
  const int64_t depth = config.depth;
  encoder_ =
      register_module("encoder", std::make_shared<SourceEncoder>(source, config, class_tokens_));
  const bool fixed = config.pooling == Pooling::fixed_dot || config.pooling == Pooling::fixed_mlp;
  const bool reads = fixed || config.pooling == Pooling::multi_head;
  // Running sums form no weights, weights of a recurrence are not shares, and weights on inducing
  // points are not weights on tokens.
  attends_ = config.layers > 0 && config.inducing_points == 0
                 ? !Normaliser(config.self.choices().normaliser).row().running_sums
                 : reads;
  attends_ = attends_ && (config.layers == 0 || config.attends_everywhere());
  if (fixed)
    fixed_ = register_module("fixed",
                             std::make_shared<FixedAttention>(FixedAttentionConfig{
                                 .score = config.pooling == Pooling::fixed_dot ? "dot" : "additive",
                                 .normaliser = config.pooling_normaliser,
                                 .depth = depth,
                                 .queries = config.queries,
                                 .attention_depth = config.attention_depth}));
  if (config.pooling == Pooling::multi_head)
    multi_head_ = register_module(
        "multi_head",
        std::make_shared<LearnedQueries>(LearnedQueriesConfig{
            .depth = depth,
            .heads = {.choices = {.normaliser = config.pooling_normaliser}, .heads = config.heads},
            .feed_forward = config.feed_forward,
            .activation = config.activation,
            .dropout = config.dropout,
            .attention_dropout = config.attention_dropout}));
  int64_t vector = fixed ? config.queries * depth : depth;
  if (config.hidden > 0) {
    hidden_ = register_module("hidden", torch::nn::Linear(vector, config.hidden));
    vector = config.hidden;
  }
  if (config.hidden_norm)
    hidden_norm_ = register_module(
        "hidden_norm",
        torch::nn::LayerNorm(torch::nn::LayerNormOptions({vector}).eps(config.epsilon)));
  const int64_t outputs = target.is_number() ? 1 : target.tokens - first_label;
  output_ = register_module("output", torch::nn::Linear(vector, outputs));
}

Tensor Classifier::pooled(const StackSource& words, const Pass& pass) const {
  const auto& [vectors, lengths] = words;
  if (fixed_) return fixed_->forward(vectors, vectors, lengths, pass.at_site(pooling_site)).context;
  if (multi_head_)
    return multi_head_->forward(vectors, lengths, pass.at_site(pooling_site)).squeeze(1);
  if (pooling_ == Pooling::class_token || pooling_ == Pooling::first_token)
    return vectors.select(1, 0);
  const Tensor sum = (vectors * word_mask(words).unsqueeze(2)).sum(1);
  return pooling_ == Pooling::mean ? sum / to_device(lengths).unsqueeze(1) : sum;
}

Tensor Classifier::logits(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const StackSource words =
      encoder_->forward(to_device(drop_words(source, word_dropout_, pass, pair_tokens_)), lengths,
                        pass.at_site({NetworkPart::encoder}));
  Tensor vector = attend::dropout(pooled(words, pass), output_dropout_, pass);
  if (hidden_) {
    vector = activated(hidden_->forward(vector), hidden_activation_, pass);
    if (hidden_norm_)
      vector = pass.normalised(
          {vector, hidden_norm_->weight, hidden_norm_->bias, hidden_norm_->options.eps()});
    vector = attend::dropout(vector, output_dropout_, pass);
  }
  return pass.watched(WatchedVectors::logits, output_->forward(vector));
}

Tensor Classifier::word_weights(const Tensor& source, const Tensor& lengths) {
  AttentionTrace trace;
  const StackSource words = encoder_->forward(to_device(source), lengths, Pass{}.watched_by(trace));
  if (pooling_ == Pooling::class_token || pooling_ == Pooling::first_token) {
    Tensor weights = at::zeros(words.vectors.sizes().slice(0, 2), words.vectors.options());
    weights.select(1, 0).fill_(1);
    weights = rolled_out(weights, trace);
    if (pooling_ == Pooling::first_token) return weights;
    weights = weights.slice(1, class_tokens_);
    // A hard head may put all its weight on the class tokens.
    return weights / weights.sum(1, true).clamp_min(std::numeric_limits<float>::min());
  }
  Tensor weights = word_mask(words);
  if (fixed_) {
    const Tensor lse = fixed_->forward(words.vectors, words.vectors, lengths).lse;
    weights = fixed_->weights(words.vectors, lse, lengths).mean(1);
  } else if (multi_head_) {
    AttentionTrace read;
    pooled(words, Pass{}.watched_by(read));
    weights = read.mean_weights(pooling_site).squeeze(1);
  } else if (pooling_ == Pooling::mean) {
    weights = weights / to_device(lengths).unsqueeze(1);
  }
  return rolled_out(weights, trace);
}

Tensor Classifier::log_probabilities(const Batch& batch, const Pass& pass) {
  return internal::target_log_probabilities(logits(batch.source, batch.source_lengths, pass), batch,
                                            target_);
}

TopVectors Classifier::top_vectors(int64_t source_length, int64_t /*target_length*/) const {
  if (fixed_ || multi_head_) return {};
  if (pooling_ == Pooling::class_token)
    return {class_tokens_, at::eye(class_tokens_ + source_length).slice(0, 0, 1)};
  if (pooling_ == Pooling::first_token) return {0, at::eye(source_length).slice(0, 0, 1)};
  return {0, at::ones({1, source_length}) / static_cast<double>(source_length)};
}

Tensor Classifier::objective(const Batch& batch, const Pass& pass, double smoothing) {
  return internal::label_objective(logits(batch.source, batch.source_lengths, pass), batch, target_,
                                   smoothing);
}

Tensor Classifier::encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const Tensor vectors = encoder_->forward(to_device(source), lengths, pass).vectors;
  return vectors.slice(1, class_tokens_);
}

// The whole network is one step, which depends only on the source.
struct Classifier::State : DecodingState {
  State(Classifier& its_network, Tensor its_source, Tensor its_lengths)
      : network(its_network), source(std::move(its_source)), lengths(std::move(its_lengths)) {}

  StepResult step(const Tensor& /*tokens*/, bool with_weights, const Pass& pass) override {
    StepResult result;
    result.log_probabilities =
        internal::step_values(network.logits(source, lengths, pass), network.target_);
    if (with_weights && network.attends()) result.weights = network.word_weights(source, lengths);
    return result;
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    if (same_sources) return;
    source = selected_rows(source, rows);
    lengths = selected_rows(lengths, rows);
  }

  Classifier& network;
  Tensor source, lengths;
};

std::unique_ptr<DecodingState> Classifier::start(const Tensor& source, const Tensor& lengths,
                                                 const Pass& /*pass*/) {
  return std::make_unique<State>(*this, source, lengths);
}

}  // namespace attend
